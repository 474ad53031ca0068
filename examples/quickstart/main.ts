// A tour, which `npm run quickstart` runs in real time and in the memory of this process.
import { MemoryRepository } from "zae-limiter/memory";
import { tour } from "./tour.ts";

await using repository = new MemoryRepository();
await tour(repository, (line) => console.log(line));
