import { describe, expect, inject, it } from "vitest";
import { whyMissing, type Engine } from "./engine-process.ts";

export type { Engine };

/** A fresh JVM needs seconds for its first answers. */
const TEST_TIMEOUT_MS = 30_000;

/**
 * A `describe` with the engine that all test files of a run share (shared-engine.ts starts it).
 * Without one it skips and says why; where engines are required (`ZAEL_REQUIRE_ENGINES=1`, as in
 * continuous integration) it fails.
 */
export function describeWithEngine(title: string, body: (engine: () => Engine) => void): void {
  describeUnlessMissing(title, whyMissing(), () => body(() => inject("engine")!));
}

/** The same for any server, with the reason why there is none. */
export function describeUnlessMissing(
  title: string,
  missing: string | undefined,
  body: () => void,
): void {
  if (missing === undefined) describe(title, { timeout: TEST_TIMEOUT_MS }, body);
  else if (process.env["ZAEL_REQUIRE_ENGINES"] === "1") it(title, () => expect.fail(missing));
  else {
    console.warn(`SKIPPED ${title}: ${missing}`);
    describe.skip(`${title}: ${missing}`, () => it("needs the engine", () => {}));
  }
}

/** A name for a table that no other test uses, on an engine that others use too. */
export function freshTableName(): string {
  tableCount += 1;
  return `test-${process.pid}-${process.hrtime.bigint().toString(36)}-${tableCount}`;
}

let tableCount = 0;
