import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readUpstreamLimits } from "./upstream-limits.ts";

const NOW_MS = Date.UTC(2026, 10, 16, 15, 30);

const OPENAI = {
  "x-ratelimit-limit-requests": "60",
  "x-ratelimit-remaining-requests": "59",
  "x-ratelimit-reset-requests": "1s",
  "x-ratelimit-limit-tokens": "150000",
  "x-ratelimit-remaining-tokens": "149984",
  "x-ratelimit-reset-tokens": "6m0s",
};

const ANTHROPIC = {
  "anthropic-ratelimit-requests-limit": "1000",
  "anthropic-ratelimit-requests-remaining": "999",
  "anthropic-ratelimit-requests-reset": "2026-11-16T15:30:01Z",
  "anthropic-ratelimit-tokens-limit": "100000",
  "anthropic-ratelimit-tokens-remaining": "99000",
  "anthropic-ratelimit-tokens-reset": "2026-11-16T15:30:01.250Z",
  "anthropic-ratelimit-input-tokens-limit": "80000",
  "anthropic-ratelimit-input-tokens-remaining": "79000",
  "anthropic-ratelimit-input-tokens-reset": "2026-11-16T16:30:02+01:00",
  "anthropic-ratelimit-output-tokens-limit": "20000",
  "anthropic-ratelimit-output-tokens-remaining": "0",
  "anthropic-ratelimit-output-tokens-reset": "2026-11-16T15:31:00Z",
};

describe("the headers of a provider", () => {
  it("are read as OpenAI sends them", () => {
    expect(readUpstreamLimits(OPENAI, NOW_MS)).toEqual({
      requests: { limit: 60, remaining: 59, fullAfterMs: 1000 },
      tokens: { limit: 150_000, remaining: 149_984, fullAfterMs: 360_000 },
    });
  });

  it("are read as Anthropic sends them", () => {
    expect(readUpstreamLimits(ANTHROPIC, NOW_MS)).toEqual({
      requests: { limit: 1000, remaining: 999, fullAfterMs: 1000 },
      tokens: { limit: 100_000, remaining: 99_000, fullAfterMs: 1250 },
      inputTokens: { limit: 80_000, remaining: 79_000, fullAfterMs: 2000 },
      outputTokens: { limit: 20_000, remaining: 0, fullAfterMs: 60_000 },
    });
  });

  it("are the same as Headers, and as a record with names in any case", () => {
    for (const headers of [OPENAI, ANTHROPIC]) {
      const loud = Object.entries(headers).map(([name, value]) => [name.toUpperCase(), value]);
      const expected = readUpstreamLimits(headers, NOW_MS);
      expect(readUpstreamLimits(new Headers(headers), NOW_MS)).toEqual(expected);
      expect(readUpstreamLimits(Object.fromEntries(loud), NOW_MS)).toEqual(expected);
    }
  });

  it("are undefined if there are none, whatever else there is", () => {
    for (const headers of [{}, new Headers(), { "content-type": "text/html", date: "today" }])
      expect(readUpstreamLimits(headers, NOW_MS)).toBeUndefined();
    for (const nothing of [undefined, null, "", 5, { "retry-after": ["1"] }])
      expect(readUpstreamLimits(nothing as never, NOW_MS)).toBeUndefined();
  });

  it("report the limit of a project if less of it is left than of its organization's", () => {
    const project = {
      "x-ratelimit-limit-project-tokens": "60000",
      "x-ratelimit-remaining-project-tokens": "57000",
      "x-ratelimit-reset-project-tokens": "3s",
    };
    const seen = { limit: 60_000, remaining: 57_000, fullAfterMs: 3000 };
    expect(readUpstreamLimits({ ...OPENAI, ...project }, NOW_MS)?.tokens).toEqual(seen);
    expect(readUpstreamLimits(project, NOW_MS)).toEqual({ tokens: seen });
    const more = { ...project, "x-ratelimit-remaining-project-tokens": "200000" };
    expect(readUpstreamLimits({ ...OPENAI, ...more }, NOW_MS)?.tokens?.remaining).toBe(149_984);
  });
});

describe("what is left", () => {
  it.each(["-1", "abc", "", " ", "5, 5", "1.5", "1e3", "+5", "0x10", "9".repeat(17), "5 tokens"])(
    "is unknown if the header is %j",
    (text) => {
      expect(remaining(text)).toBeUndefined();
      expect(remaining(text, "1000")).toBeUndefined();
    },
  );

  it("is unknown if a header came twice, in two cases", () => {
    const headers = { "X-RateLimit-Limit-Tokens": "5", "x-ratelimit-limit-tokens": "5" };
    expect(readUpstreamLimits(headers, NOW_MS)).toBeUndefined();
  });

  it("is 0 if the limit is valid or missing, and unknown beside Azure's -1 and 0", () => {
    expect(remaining("0", "1000")).toBe(0);
    expect(remaining("0")).toBe(0);
    for (const limit of ["-1", "0", "abc", "5, 5"]) expect(remaining("0", limit)).toBeUndefined();
    expect(remaining("7", "-1")).toBe(7);
  });

  it("is nothing at all in what Azure sends for undisclosed limits", () => {
    const headers = {
      "x-ratelimit-limit-tokens": "-1",
      "x-ratelimit-remaining-tokens": "-1",
      "x-ratelimit-reset-tokens": "0",
    };
    expect(readUpstreamLimits(headers, NOW_MS)).toBeUndefined();
  });
});

it.each([
  ["1s", 1000],
  ["6m0s", 360_000],
  ["12ms", 12],
  ["1h2m3.5s", 3_723_500],
  ["24h0m0s", 86_400_000],
  ["1d", 86_400_000],
  ["8.64s", 8640],
  ["1.2ms", 2],
  ["150µs", 1],
  ["20ns", undefined],
  ["12", 12_000],
  ["0s", undefined],
  ["0", undefined],
  ["-1s", undefined],
  ["1 s", undefined],
  ["s", undefined],
  ["1x", undefined],
  ["1s, 1s", undefined],
  ["1700000000", undefined],
  ["9".repeat(400) + "s", undefined],
])("a reset of %j is in %j ms", (text, ms) => {
  const seen = readUpstreamLimits({ "x-ratelimit-reset-requests": text }, NOW_MS);
  expect(seen?.requests?.fullAfterMs).toBe(ms);
});

it.each([
  [{ "retry-after": "2" }, 2000],
  [{ "retry-after": "0.25" }, 250],
  [{ "retry-after-ms": "1500" }, 1500],
  [{ "retry-after-ms": "1500.2", "retry-after": "9" }, 1501],
  [{ "retry-after-ms": "abc", "retry-after": "9" }, 9000],
  [{ "Retry-After": "Mon, 16 Nov 2026 15:30:05 GMT" }, 5000],
  [{ "retry-after": "Mon, 16 Nov 2026 15:29:59 GMT" }, undefined],
  [{ "retry-after": "Mon, 99 Nov 2026 15:29:59 GMT" }, undefined],
  [{ "retry-after": "0" }, undefined],
  [{ "retry-after": "-5" }, undefined],
  [{ "retry-after": "soon" }, undefined],
  [{ "retry-after": "try 5" }, undefined],
  [{ "retry-after": "1, 2" }, undefined],
  [{ "retry-after": "999999999999" }, undefined],
])("%j asks for a pause of %j ms", (headers, ms) => {
  expect(readUpstreamLimits(headers as Record<string, string>, NOW_MS)?.retryAfterMs).toBe(ms);
});

it("never throws, and knows positive whole numbers only, whatever the headers hold", () => {
  const names = [
    ...Object.keys(OPENAI),
    ...Object.keys(ANTHROPIC),
    "retry-after",
    "retry-after-ms",
  ];
  const value = fc.oneof(
    fc.string(),
    fc.double().map(String),
    fc.bigInt().map(String),
    fc.date().map((date) => (Number.isNaN(date.getTime()) ? "" : date.toISOString())),
    fc.date().map((date) => date.toUTCString()),
    fc.constantFrom("-1", "0", "5, 5", "1s", "6m0s", "abc", ""),
  );
  const known = fc.dictionary(fc.constantFrom(...names), value);
  const any = fc.dictionary(fc.string(), fc.anything());
  fc.assert(
    fc.property(fc.oneof(known, any), fc.integer(), (headers, nowMs) => {
      const { retryAfterMs, ...limits } =
        readUpstreamLimits(headers as Record<string, string>, nowMs) ?? {};
      const times = [retryAfterMs, ...Object.values(limits).map((each) => each.fullAfterMs)];
      const sizes = Object.values(limits).map((each) => each.limit);
      const left = Object.values(limits).map((each) => each.remaining);
      for (const number of [...times, ...sizes])
        if (number !== undefined) expect(Number.isSafeInteger(number) && number > 0).toBe(true);
      for (const number of left)
        if (number !== undefined) expect(Number.isSafeInteger(number) && number >= 0).toBe(true);
    }),
  );
});

/** What is read as left of the tokens. */
function remaining(text: string, limit?: string): number | undefined {
  const headers = {
    "x-ratelimit-remaining-tokens": text,
    ...(limit !== undefined && { "x-ratelimit-limit-tokens": limit }),
  };
  return readUpstreamLimits(headers, NOW_MS)?.tokens?.remaining;
}
