/*
 * The callbacks with LangChain's client of OpenAI, against a provider on this machine. What each
 * end of a run costs is in the matrix.
 */
import { beforeAll, describe, expect, it } from "vitest";
import { ANSWER } from "../../../../../examples/local-provider/wishes.ts";
import { isSkipped, runNewer, TIMEOUT_MS } from "../newer-node.ts";

/** The question has 8 tokens by the provider, and 6 by our estimate; the answer has 8. */
const ANSWERED = "complete reported 8+8";
const REFUSED = "our RateLimitExceeded";

const EXPECTED: Readonly<Record<string, object>> = {
  "stream of responses": { text: ANSWER, rpm: 1, tpm: 16, calls: [ANSWERED] },
  "calls of tools without usage": {
    toolCalls: 1,
    rpm: 2,
    tpm: 58,
    calls: ["complete counted 25+4", "complete counted 25+4"],
  },
  batch: { answers: 2, rpm: 2, tpm: 32, calls: [ANSWERED, ANSWERED] },
  refused: { error: REFUSED, ofStream: REFUSED, requests: 0, rpm: 100, calls: [] },
  "stopped when nothing is left": {
    error: REFUSED,
    textBytes: 3985,
    rpm: 1,
    tpm: 10_000,
    calls: ["stopped counted 6+995"],
  },
  "answered by a cache": {
    text: ANSWER,
    requests: 1,
    rpm: 1,
    tpm: 16,
    calls: [ANSWERED, "failed estimated 0+0"],
  },
  "one handler, given twice": { text: ANSWER, rpm: 1, tpm: 16, calls: [ANSWERED] },
};

describe.skipIf(isSkipped)("under Node 24", () => {
  let outcomes: Readonly<Record<string, unknown>>;

  beforeAll(async () => {
    ({ printed: outcomes } = await runNewer(new URL("scenarios.ts", import.meta.url)));
  }, TIMEOUT_MS);

  it.each(Object.keys(EXPECTED))("%s", (name) => {
    expect(outcomes[name]).toEqual(EXPECTED[name]);
  });

  it("all scenarios are expected", () => {
    expect(Object.keys(outcomes)).toEqual(Object.keys(EXPECTED));
  });
});
