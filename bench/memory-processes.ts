import { execFileSync, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { Contestant, Cost } from "./harness.ts";
import type { HeapPerKey } from "./heap-per-key.ts";

/** Contestants over the same keys, each in a process of its own; they still take turns. */
export function contestantsOver(
  names: readonly string[],
  keys: number,
): readonly (Contestant & { end(): void })[] {
  return names.map((name) => {
    const worker = fork(script("memory-worker.js"), [name, String(keys)]);
    const run = async (operations: number): Promise<Cost> => {
      worker.send(operations);
      const [cost] = (await once(worker, "message")) as [Cost];
      return cost;
    };
    return { name, run, end: () => worker.disconnect() };
  });
}

/** Measured in a fresh process, where nothing else was ever on the heap. */
export function heapPerKey(name: string, keys: number): HeapPerKey {
  const args = ["--expose-gc", script("heap-per-key.js"), name, String(keys)];
  return JSON.parse(execFileSync(process.execPath, args, { encoding: "utf8" })) as HeapPerKey;
}

function script(name: string): string {
  return fileURLToPath(new URL(name, import.meta.url));
}
