export { MemoryRepository } from "./memory-repository.ts";
