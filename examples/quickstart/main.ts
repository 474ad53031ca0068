// A tour: `npm run quickstart`. Everything happens in this process's memory, in real time.
import { MemoryRepository } from "zae-limiter/memory";
import { tour } from "./tour.ts";

await using repository = new MemoryRepository();
await tour(repository, (line) => console.log(line));
