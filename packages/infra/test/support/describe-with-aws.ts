import { afterAll, afterEach, beforeAll } from "vitest";
import { describeWithEngine } from "../../../limiter/test/support/engine.ts";
import { ScriptedAws } from "./scripted-aws/scripted-aws.ts";

/**
 * A `describe` with the scripted AWS in front of the engine that all tests share. The credentials
 * are those of the tests' own process, and faults end with each test.
 */
export function describeWithAws(title: string, body: (aws: () => ScriptedAws) => void): void {
  describeWithEngine(title, (engine) => {
    let aws: ScriptedAws;
    beforeAll(async () => {
      aws = await ScriptedAws.start({ engineUrl: engine().endpointUrl });
    });
    afterEach(() => aws.faults.clear());
    afterAll(() => aws.stop());
    body(() => aws);
  });
}
