import { MemoryRepository } from "zae-limiter/memory";
import { seededRandom } from "zae-limiter/testing";
import type { Backend } from "./client.ts";

/** The reference backend: one process, so all clients share its repository. */
export const memoryBackend: Backend = {
  name: "memory",
  separate: false,
  begin: () => ({ open: (clock) => new MemoryRepository({ clock, random: seededRandom(1) }) }),
};
