export { openRepository } from "./open-repository.ts";
