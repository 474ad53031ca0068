import type { TestProject } from "vitest/node";
import { startEngine, whyMissing, type Engine } from "./engine-process.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** The engine that all test files of a run share; `undefined` where none is installed. */
    readonly engine: Engine | undefined;
  }
}

/**
 * Starts one engine before the tests of a run and stops it after them, whether they pass or fail.
 * Every run starts it, also one that does not need it: dynoxide answers after a few hundredths of a
 * second. Tests do not get in each other's way, because each works on tables of its own.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  if (whyMissing() !== undefined) {
    project.provide("engine", undefined);
    return async () => {};
  }
  const engine = await startEngine();
  project.provide("engine", { name: engine.name, endpointUrl: engine.endpointUrl });
  return () => engine.stop();
}
