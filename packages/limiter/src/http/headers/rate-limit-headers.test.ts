import * as fc from "fast-check";
import { parseDictionary, parseItem, parseList, type Item } from "structured-headers";
import { describe, expect, it } from "vitest";
import { anyStatuses, STATUSES_MS, status, wellFormed } from "../../../test/support/statuses.ts";
import type { LimitStatus } from "../../core/bucket/decision.ts";
import { ValidationError } from "../../core/errors.ts";
import { isRate } from "../../core/limit-kinds.ts";
import { Limit } from "../../core/limit.ts";
import type { HeaderOptions, HeaderStyle } from "./options.ts";
import { rateLimitHeaders } from "./rate-limit-headers.ts";
import { policyName } from "./shown-limit.ts";

const NOW_MS = STATUSES_MS;
const TPM = Limit.perMinute("tpm", 10_000, { burst: 15_000 });

/** 59 of 60 requests and all tokens are left; the parent's 4 of 6000 are not shown. */
const GRANTED = [
  status("rpm"),
  status("tpm", { limit: TPM, available: 15_000 }),
  status("rpm", { entityId: "org-1", limit: Limit.perMinute("rpm", 6000), available: 4 }),
];

/** 500 tokens are owed, and the call fits a millisecond after 11 s. Requests are all there. */
const REFUSED = [
  status("rpm", { available: 60 }),
  status("tpm", { limit: TPM, available: -500, requested: 1500, retryAfterSeconds: 11.001 }),
];

function headers(statuses: readonly LimitStatus[], options: HeaderOptions = {}) {
  return rateLimitHeaders(statuses, { ...options, nowMs: NOW_MS });
}

describe("each style, granted and refused", () => {
  it("ietf is ietf-11: every limit by name", () => {
    for (const style of [undefined, "ietf", "ietf-11"] as const) {
      expect(headers(GRANTED, style && { style })).toEqual({
        "RateLimit-Policy": '"rpm";q=60;w=60, "tpm";q=10000;w=60;zae-burst=15000',
        RateLimit: '"rpm";r=59;t=1, "tpm";r=15000',
      });
      expect(headers(REFUSED, style && { style })).toEqual({
        "RateLimit-Policy": '"rpm";q=60;w=60, "tpm";q=10000;w=60;zae-burst=15000',
        RateLimit: '"rpm";r=60, "tpm";r=0;t=12',
        "Retry-After": "12",
      });
    }
  });

  it("draft-7: the tightest limit", () => {
    expect(headers(GRANTED, { style: "draft-7" })).toEqual({
      "RateLimit-Policy": "60;w=60, 10000;w=60;zae-burst=15000",
      RateLimit: "limit=60, remaining=59, reset=1",
    });
    expect(headers(REFUSED, { style: "draft-7" })).toEqual({
      "RateLimit-Policy": "60;w=60, 10000;w=60;zae-burst=15000",
      RateLimit: "limit=15000, remaining=0, reset=12",
      "Retry-After": "12",
    });
  });

  it("draft-6: the tightest limit", () => {
    expect(headers(GRANTED, { style: "draft-6" })).toEqual({
      "RateLimit-Policy": "60;w=60, 10000;w=60;zae-burst=15000",
      "RateLimit-Limit": "60",
      "RateLimit-Remaining": "59",
      "RateLimit-Reset": "1",
    });
    expect(headers(REFUSED, { style: "draft-6" })).toEqual({
      "RateLimit-Policy": "60;w=60, 10000;w=60;zae-burst=15000",
      "RateLimit-Limit": "15000",
      "RateLimit-Remaining": "0",
      "RateLimit-Reset": "12",
      "Retry-After": "12",
    });
  });

  it("legacy: the tightest limit, and when it is full", () => {
    const seconds = Math.floor(NOW_MS / 1000);
    expect(headers(GRANTED, { style: "legacy" })).toEqual({
      "X-RateLimit-Limit": "60",
      "X-RateLimit-Remaining": "59",
      "X-RateLimit-Reset": String(seconds + 2),
    });
    // 15 500 tokens at 10 000 a minute take 93 s.
    expect(headers(REFUSED, { style: "legacy" })).toEqual({
      "X-RateLimit-Limit": "15000",
      "X-RateLimit-Remaining": "0",
      "X-RateLimit-Reset": String(seconds + 94),
      "Retry-After": "12",
    });
  });

  it("openai: requests and tokens", () => {
    expect(headers(GRANTED, { style: "openai" })).toEqual({
      "x-ratelimit-limit-requests": "60",
      "x-ratelimit-remaining-requests": "59",
      "x-ratelimit-reset-requests": "1s",
      "x-ratelimit-limit-tokens": "15000",
      "x-ratelimit-remaining-tokens": "15000",
      "x-ratelimit-reset-tokens": "0s",
    });
    expect(headers(REFUSED, { style: "openai" })).toEqual({
      "x-ratelimit-limit-requests": "60",
      "x-ratelimit-remaining-requests": "60",
      "x-ratelimit-reset-requests": "0s",
      "x-ratelimit-limit-tokens": "15000",
      "x-ratelimit-remaining-tokens": "0",
      "x-ratelimit-reset-tokens": "1m33s",
      "Retry-After": "12",
    });
  });

  it("anthropic: requests, and tokens of each kind", () => {
    const kinds = ["rpm", "tpm", "itpm", "otpm"].map((name) => status(name));
    expect(headers(kinds, { style: "anthropic" })).toEqual(
      Object.fromEntries(
        ["requests", "tokens", "input-tokens", "output-tokens"].flatMap((kind) => [
          [`anthropic-ratelimit-${kind}-limit`, "60"],
          [`anthropic-ratelimit-${kind}-remaining`, "59"],
          [`anthropic-ratelimit-${kind}-reset`, "2026-11-16T15:30:02Z"],
        ]),
      ),
    );
    expect(headers(REFUSED, { style: "anthropic" })).toEqual({
      "anthropic-ratelimit-requests-limit": "60",
      "anthropic-ratelimit-requests-remaining": "60",
      "anthropic-ratelimit-requests-reset": "2026-11-16T15:30:01Z",
      "anthropic-ratelimit-tokens-limit": "15000",
      "anthropic-ratelimit-tokens-remaining": "0",
      "anthropic-ratelimit-tokens-reset": "2026-11-16T15:31:34Z",
      "Retry-After": "12",
    });
  });

  it("of a field that two styles write, the first one decides", () => {
    const [ietf, draft6] = (["ietf", "draft-6"] as const).map((style) =>
      headers(GRANTED, { style }),
    );
    expect(headers(GRANTED, { style: ["ietf", "draft-6"] })).toEqual({ ...draft6, ...ietf });
    expect(headers(GRANTED, { style: ["draft-6", "ietf"] })).toEqual({ ...ietf, ...draft6 });
  });

  it("several styles give what each of them gives", () => {
    expect(headers(REFUSED, { style: ["ietf", "openai", "legacy"] })).toEqual({
      ...headers(REFUSED, { style: "ietf" }),
      ...headers(REFUSED, { style: "openai" }),
      ...headers(REFUSED, { style: "legacy" }),
    });
  });
});

describe("quotas and sessions, granted and refused", () => {
  /** In Berlin, this day has 25 hours, and 10 of them are left. */
  const nowMs = Date.UTC(2026, 9, 25, 13);
  const tpd = Limit.quota("tpm", 1000, { every: "day", zone: "Europe/Berlin" });
  const session = Limit.session("rpm", 45, { windowSeconds: 18_000 });
  const open = (ms: number) => ({ resetsAt: new Date(nowMs + ms), resetsInSeconds: ms / 1000 });
  const granted = [
    status("rpm", { limit: session, available: 44, ...open(17_999_500) }),
    status("tpm", { limit: tpd, available: 200, ...open(36_000_000) }),
  ];
  const refused = [
    status("rpm", { limit: session, available: 45 }),
    { ...granted[1]!, available: -7, exceeded: true, retryAfterSeconds: 36_000 },
  ];
  const show = (statuses: readonly LimitStatus[], style: HeaderStyle) =>
    Object.values(rateLimitHeaders(statuses, { style, nowMs }));

  it.each([
    [
      "ietf-11",
      ['"rpm";q=45;w=18000, "tpm";q=1000;w=90000', '"rpm";r=44;t=18000, "tpm";r=200;t=36000'],
      ['"rpm";q=45;w=18000, "tpm";q=1000;w=90000', '"rpm";r=45, "tpm";r=0;t=36000'],
    ],
    [
      "draft-7",
      ["45;w=18000, 1000;w=90000", "limit=1000, remaining=200, reset=36000"],
      ["45;w=18000, 1000;w=90000", "limit=1000, remaining=0, reset=36000"],
    ],
    [
      "draft-6",
      ["45;w=18000, 1000;w=90000", "1000", "200", "36000"],
      ["45;w=18000, 1000;w=90000", "1000", "0", "36000"],
    ],
    ["legacy", ["1000", "200", "1792969200"], ["1000", "0", "1792969200"]],
    [
      "openai",
      ["45", "44", "4h59m59.5s", "1000", "200", "10h0m0s"],
      ["45", "45", "0s", "1000", "0", "10h0m0s"],
    ],
    [
      "anthropic",
      ["45", "44", "2026-10-25T18:00:00Z", "1000", "200", "2026-10-25T23:00:00Z"],
      ["45", "45", "2026-10-25T13:00:00Z", "1000", "0", "2026-10-25T23:00:00Z"],
    ],
  ] as const)("%s", (style, whenGranted, whenRefused) => {
    expect(show(granted, style)).toEqual(whenGranted);
    expect(show(refused, style)).toEqual([...whenRefused, "36000"]);
  });

  it.each([
    [{ every: "hour", zone: "UTC" }, "2026-11-16T16:00:00Z", 3600],
    [{ every: "day", zone: "Europe/Berlin" }, "2026-03-29T22:00:00Z", 82_800],
    // By the time zone data of another process, that day has 24 hours.
    [{ every: "day", zone: "Europe/Berlin" }, "2026-03-29T23:00:00Z", 82_800],
    [{ every: "day", zone: "Australia/Lord_Howe" }, "2026-04-05T13:30:00Z", 88_200],
    [{ every: "week", zone: "UTC", weekday: "sunday" }, "2026-11-22T00:00:00Z", 604_800],
    [{ every: "month", zone: "UTC" }, "2026-03-01T00:00:00Z", 28 * 86_400],
    [{ every: "month", zone: "UTC", day: 31 }, "2026-05-31T00:00:00Z", 31 * 86_400],
    [{ every: "day", zone: "UTC" }, undefined, 86_400],
    [{ cron: "0 9 * * mon", zone: "UTC" }, "2026-11-23T09:00:00Z", undefined],
  ] as const)("a window of %j that ends at %s has %s s", (resets, end, seconds) => {
    const limit = Limit.quota("tpm", 9, resets);
    const resetsAt = end === undefined ? undefined : new Date(end);
    for (let times = 0; times < 2; times += 1)
      expect(headers([status("tpm", { limit, resetsAt })])["RateLimit-Policy"]).toBe(
        seconds === undefined ? '"tpm";q=9' : `"tpm";q=9;w=${seconds}`,
      );
  });
});

describe("what the headers say", () => {
  it("no more remains than the limit, also of a quota that holds what it has carried over", () => {
    const day = { every: "day", zone: "UTC" } as const;
    const limit = Limit.quota("rpm", 100, day, { carry: { unused: 50 } });
    for (const style of ["draft-6", "legacy", "openai", "anthropic"] as const) {
      const fields = headers([status("rpm", { limit, available: 130 })], { style });
      expect(Object.values(fields).filter((value) => value === "130")).toHaveLength(2);
    }
  });

  it("a call that can never fit is not to be retried", () => {
    const never = [
      status("rpm", { retryAfterSeconds: 3, available: 0 }),
      status("tpm", { retryAfterSeconds: Infinity, available: 7 }),
    ];
    expect(headers(never)).toEqual({
      "RateLimit-Policy": '"rpm";q=60;w=60, "tpm";q=60;w=60',
      RateLimit: '"rpm";r=0;t=3, "tpm";r=7',
      "x-should-retry": "false",
    });
    // Drafts 6 and 7 require a reset.
    expect(headers(never, { style: "draft-7" })["RateLimit"]).toBe(
      "limit=60, remaining=7, reset=60",
    );
  });

  it("a limit that refused is tighter than one with less left", () => {
    const refused = status("tpm", { available: 40, requested: 50, retryAfterSeconds: 10 });
    for (const statuses of [
      [refused, status("rpm", { available: 1 })],
      [status("rpm", { available: 1 }), refused],
    ])
      expect(headers(statuses, { style: "draft-7" })["RateLimit"]).toBe(
        "limit=60, remaining=40, reset=10",
      );
  });

  it("a parent is hidden unless it is asked for", () => {
    expect(headers(GRANTED, { parents: true })["RateLimit"]).toBe(
      '"rpm";r=59;t=1, "tpm";r=15000, "parent-rpm";r=4;t=1',
    );
    for (const style of ["draft-6", "legacy"] as const) {
      const shown = Object.values(headers(GRANTED, { style }));
      const all = Object.values(headers(GRANTED, { style, parents: true }));
      expect([shown.includes("4"), all.includes("4")]).toEqual([false, true]);
    }
  });

  it("a parent that refuses is named, and its balance is shown as 0", () => {
    const limit = Limit.perMinute("rpm", 6000);
    const parent = status("rpm", {
      entityId: "org-1",
      limit,
      available: 4,
      requested: 10,
      retryAfterSeconds: 0.06,
    });
    const further = { ...parent, resource: "search", available: -3 };
    const statuses = [status("rpm"), parent, status("rpm", { resource: "search" }), further];
    expect(headers(statuses)).toEqual({
      "RateLimit-Policy":
        '"rpm";q=60;w=60, "parent-rpm";q=6000;w=60, "search-rpm";q=60;w=60, "parent-search-rpm";q=6000;w=60',
      RateLimit:
        '"rpm";r=59;t=1, "parent-rpm";r=0;t=1, "search-rpm";r=59;t=1, "parent-search-rpm";r=0;t=1',
      "Retry-After": "1",
    });
    expect(headers(statuses, { parents: true })["RateLimit"]).toContain('"parent-rpm";r=4;t=1');
    // 6000 tokens at 6000 a minute, whatever the balance is.
    expect(headers(statuses, { style: "openai" })).toMatchObject({
      "x-ratelimit-limit-requests": "6000",
      "x-ratelimit-remaining-requests": "0",
      "x-ratelimit-reset-requests": "1m0s",
    });
    // Its debt takes longer than that, and no client should return before it is gone.
    const indebted = { ...parent, available: -9000, retryAfterSeconds: 90.1 };
    expect(headers([status("rpm"), indebted], { style: "openai" })).toMatchObject({
      "x-ratelimit-reset-requests": "1m30.1s",
      "Retry-After": "91",
    });
  });

  it("openai and anthropic show the limits that are named", () => {
    const statuses = [status("calls", { available: 7 }), status("rpm")];
    const shown = headers(statuses, {
      style: ["openai", "anthropic"],
      names: { requests: "calls", inputTokens: undefined } as never,
    });
    expect(shown["x-ratelimit-remaining-requests"]).toBe("7");
    expect(shown["anthropic-ratelimit-requests-remaining"]).toBe("7");
    expect(headers([status("other")], { style: ["openai", "anthropic"] })).toEqual({});
  });

  it.each([
    [1, 1000, "60ms"],
    [3, 2, "1m30s"],
    [1, 40, "1.5s"],
    [1, 60_000, "1ms"],
    [6, 1, "6m0s"],
    [60 * 25, 1, "25h0m0s"],
    [1e30, 1, "277777777h46m39.999s"],
  ])("%d tokens at %d a minute are there in %s", (missing, refillAmount, text) => {
    const limit = { name: "rpm", capacity: missing, refillAmount, refillPeriodSeconds: 60 };
    expect(
      headers([status("rpm", { limit, available: 0 })], { style: "openai" })[
        "x-ratelimit-reset-requests"
      ],
    ).toBe(text);
  });

  it("times stay within what RFC 3339 can write", () => {
    const limit = { name: "rpm", capacity: 1e20, refillAmount: 1, refillPeriodSeconds: 60 };
    const reset = (nowMs: number) =>
      rateLimitHeaders([status("rpm", { limit })], { style: "anthropic", nowMs })[
        "anthropic-ratelimit-requests-reset"
      ];
    expect(reset(NOW_MS)).toBe("9999-12-31T23:59:59Z");
    expect(reset(-1e300)).toBe("1970-01-01T00:00:00Z");
  });

  it("there are no headers without limits", () => {
    expect(headers([])).toEqual({});
  });
});

describe("any statuses", () => {
  const style = fc.constantFrom<HeaderStyle>(
    ...(["ietf", "draft-7", "draft-6", "legacy", "openai", "anthropic"] as const),
  );

  it("make headers that the standard's parser reads, and the right members", () => {
    fc.assert(
      fc.property(anyStatuses, fc.boolean(), (statuses, parents) => {
        const fields = headers(statuses, { parents });
        const policies = parseList(fields["RateLimit-Policy"]!) as Item[];
        const balances = parseList(fields["RateLimit"]!) as Item[];
        const shown = statuses.filter(
          ({ entityId, exceeded }) => entityId === "key-1" || parents || exceeded,
        );
        const names = shown.map((each) => wellFormed(policyName(each, statuses[0])));
        expect(policies.map(([name]) => decodeURIComponent(name as string))).toEqual(names);
        expect(balances.map(([name]) => name)).toEqual(policies.map(([name]) => name));
        for (const [index, [, parameters]] of policies.entries()) {
          expect(Object.fromEntries(parameters)).toEqual(
            describePolicy(shown[index]!, parameters.get("w")),
          );
        }
        for (const [index, [, parameters]] of balances.entries()) {
          const { available, limit, entityId, exceeded, retryAfterSeconds } = shown[index]!;
          const isHidden = entityId !== "key-1" && !parents;
          expect(parameters.get("r")).toBe(isHidden ? 0 : cut(Math.max(0, available)));
          const time = parameters.get("t") as number | undefined;
          if (exceeded) {
            expect(time).toBe(
              retryAfterSeconds === Infinity ? undefined : cut(Math.ceil(retryAfterSeconds)),
            );
            if (fields["Retry-After"] !== undefined)
              expect(Number(fields["Retry-After"])).toBeGreaterThanOrEqual(time!);
          } else if (available >= limit.capacity) expect(time).toBeUndefined();
          else if (isRate(limit)) {
            // A whole token is earned by then, and would not be a second earlier.
            const earned = BigInt(time!) * BigInt(limit.refillAmount);
            expect(earned >= BigInt(cut(limit.refillPeriodSeconds))).toBe(true);
          } else {
            const { resetsAt } = shown[index]!;
            expect(time).toBe(resetsAt && Math.ceil((resetsAt.getTime() - NOW_MS) / 1000));
          }
        }
      }),
    );
  });

  it("give Retry-After if the call can fit, and otherwise say that it cannot", () => {
    fc.assert(
      fc.property(anyStatuses, style, (statuses, one) => {
        const waits = statuses.flatMap(({ exceeded, retryAfterSeconds }) =>
          exceeded ? [retryAfterSeconds] : [],
        );
        const fields = headers(statuses, { style: one });
        const longest = Math.max(...waits);
        expect(fields["x-should-retry"]).toBe(longest === Infinity ? "false" : undefined);
        expect(fields["Retry-After"]).toBe(
          Number.isFinite(longest) ? String(cut(Math.ceil(longest))) : undefined,
        );
        if (one === "draft-7" && Number.isFinite(longest))
          expect(parseDictionary(fields["RateLimit"]!).get("reset")![0]).toBe(
            Number(fields["Retry-After"]),
          );
      }),
    );
  });

  it("make values that every HTTP client accepts, in every style", () => {
    fc.assert(
      fc.property(anyStatuses, style, fc.boolean(), (statuses, one, parents) => {
        const fields = headers(statuses, { style: one, parents });
        expect(() => new Headers(fields)).not.toThrow();
        for (const [name, value] of Object.entries(fields)) {
          expect(value).toMatch(/^[ -~]+$/);
          if (/-[lL]imit$|-[rR]emaining$|-Reset$|^x-ratelimit-[lr][ie]m|^Retry/.test(name))
            expect(parseItem(value)[0]).toBeGreaterThanOrEqual(0);
          if (/^anthropic.*reset$/.test(name))
            expect(new Date(value).getTime()).toBeGreaterThanOrEqual(NOW_MS);
          if (name.startsWith("x-ratelimit-reset"))
            expect(value).toMatch(/^(?:\d+ms|(?:(?:\d+h)?\d+m)?\d+(?:\.\d{1,3})?s)$/);
        }
      }),
    );
  });
});

/** What a policy shows. The windows of a calendar have many lengths, `shown` is one of them. */
function describePolicy({ limit }: LimitStatus, shown: unknown): object {
  if (isRate(limit)) {
    const { refillAmount, refillPeriodSeconds, capacity } = limit;
    const burst = capacity !== refillAmount && { "zae-burst": cut(capacity) };
    return { q: cut(refillAmount), w: cut(refillPeriodSeconds), ...burst };
  }
  const q = cut(limit.capacity);
  if (limit.kind === "session") return { q, w: cut(limit.windowSeconds) };
  if ("cron" in limit.resets) return { q };
  const [least, most] = { hour: [0.5, 1], day: [23, 25], week: [167, 169], month: [671, 745] }[
    limit.resets.every
  ] as [number, number];
  expect(shown).toBeGreaterThanOrEqual(least * 3600);
  expect(shown).toBeLessThanOrEqual(most * 3600);
  return { q, w: shown };
}

function cut(value: number): number {
  return Math.min(value, 999_999_999_999_999);
}

describe("wrong input", () => {
  it.each([
    [{ style: "draft-8" }, "Invalid style: must be one of ietf, ietf-11, draft-7"],
    [{ style: "constructor" }, "Invalid style: must be one of"],
    [{ style: [] }, "Invalid style: must name at least one style; for no headers, set headers"],
    [{ style: ["ietf", 7] }, "Invalid style: must be one of"],
    [{ style: ["ietf", "draft-7"] }, "writes the header RateLimit in another way than ietf-11"],
    [{ style: ["draft-7", "legacy", "ietf-11"] }, "in another way than draft-7"],
    [{ parents: "yes" }, "Invalid parents: must be true or false"],
    [{ names: { request: "rpm" } }, "Invalid request: is not an option of names; did you mean"],
    [{ names: { requests: "" } }, "Invalid names.requests: must not be empty"],
    [{ names: "rpm" }, "Invalid options: must be an object of options of names"],
    [{ styles: "ietf" }, "Invalid styles: is not an option of headers; did you mean style?"],
    [{ nowMs: Number.NaN }, "Invalid nowMs: must be a time in milliseconds"],
    [{ nowMs: "now" }, "Invalid nowMs: must be a time in milliseconds"],
    [{ nowMs: undefined }, "Invalid nowMs: must be a time in milliseconds"],
  ])("%j is refused", (options, message) => {
    const call = () => rateLimitHeaders(GRANTED, { nowMs: NOW_MS, ...options } as never);
    expect(call).toThrow(ValidationError);
    expect(call).toThrow(message);
  });

  it("no options and no statuses are refused, and one draft may be named twice", () => {
    expect(() => rateLimitHeaders(GRANTED, undefined as never)).toThrow(ValidationError);
    expect(() => headers(undefined as never)).toThrow("Invalid statuses: must be an array");
    expect(headers(GRANTED, { style: ["ietf", "ietf-11"] })).toEqual(headers(GRANTED));
  });
});
