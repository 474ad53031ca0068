/*
 * The callbacks with LangChain's client of OpenAI, against a provider on this machine: what each
 * end of a run costs, and what the caller sees.
 */
import { beforeAll, expect, it } from "vitest";
import { ANSWER } from "../../../../../examples/local-provider/wishes.ts";
import { outcomesOf, TIMEOUT_MS } from "../newer-node.ts";
import { charged } from "../observed-limiter.ts";

/** The question has 8 tokens by the provider, and 6 by our estimate; the answer has 8. */
const ANSWERED = { text: ANSWER, ...charged(1, 16, "complete reported 8+8") };
const COUNTED = { text: ANSWER, ...charged(1, 18, "complete counted 6+12") };
const HALF = { text: "A bucket holds tokens, ", ...charged(1, 12, "cut counted 6+6") };
const FAILED = "failed estimated 0+0";
const REFUSED = "our RateLimitExceeded";

const EXPECTED: Readonly<Record<string, object>> = {
  invoke: ANSWERED,
  "invoke without usage": COUNTED,
  stream: ANSWERED,
  "stream without usage": COUNTED,
  "stream of responses": ANSWERED,
  "calls of tools without usage": {
    toolCalls: 1,
    ...charged(2, 58, "complete counted 25+4", "complete counted 25+4"),
  },
  batch: {
    answers: 2,
    ...charged(2, 32, "complete reported 8+8", "complete reported 8+8"),
  },
  "500, then answered": { ...ANSWERED, requests: 2 },
  "429": { error: expect.any(String), ...charged(0, 0, FAILED) },
  "connection refused": { error: "Error", ...charged(0, 0, FAILED) },
  "no answer on a connection": {
    error: "Error",
    ...charged(1, 106, "cut estimated 6+100"),
  },
  "stream cut off": { error: "TypeError", ...HALF },
  "stream with an error event": { error: "Error", ...HALF },
  "aborted before": { error: "AbortError", ...charged(0, 0) },
  "aborted without an answer": {
    error: "AbortError",
    ...charged(1, 106, "abandoned estimated 6+100"),
  },
  "aborted while it streams": {
    error: "AbortError",
    ...charged(1, 9, "abandoned counted 6+3"),
  },
  // LangChain tells of a piece when the next one is asked for, so the last of five is missing.
  "left by break": { ...charged(1, 11, "abandoned counted 6+5") },
  "never read": { ...charged(1, 106, "abandoned estimated 6+100") },
  refused: { error: REFUSED, ofStream: REFUSED, requests: 0, ...charged(100, 0) },
  "stopped when nothing is left": {
    error: REFUSED,
    textBytes: 3985,
    ...charged(1, 1000, "stopped counted 6+995"),
  },
  "answered by a cache": { ...ANSWERED, requests: 1, calls: [...ANSWERED.calls, FAILED] },
  "one handler, given twice": ANSWERED,
};

let outcomes: Readonly<Record<string, unknown>>;

beforeAll(async () => {
  outcomes = await outcomesOf(new URL("scenarios.ts", import.meta.url));
}, TIMEOUT_MS);

it.each(Object.keys(EXPECTED))("%s", (name) => {
  expect(outcomes[name]).toEqual(EXPECTED[name]);
});

it("all scenarios are expected", () => {
  expect(Object.keys(outcomes)).toEqual(Object.keys(EXPECTED));
});
