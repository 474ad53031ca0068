import * as fc from "fast-check";
import { expect, it } from "vitest";
import { anyStatuses, status } from "../../test/support/statuses.ts";
import { RateLimitExceeded } from "../core/bucket/refusal.ts";
import { Limit } from "../core/limit.ts";
import { refusalProblem } from "./problem.ts";

it("names the limits that refused, and says in a sentence which one and how long", () => {
  const refusal = new RateLimitExceeded([
    status("rpm"),
    status("tpm", { available: 0, retryAfterSeconds: 0.5 }),
    status("rpm", { entityId: "org-1", available: -5, retryAfterSeconds: 11.001 }),
    status("rpm", { resource: "search", available: 0, retryAfterSeconds: 2 }),
    status("rpm", { entityId: "org-1", resource: "search", retryAfterSeconds: 1 }),
  ]);
  expect(refusalProblem(refusal)).toEqual({
    type: "https://iana.org/assignments/http-problem-types#quota-exceeded",
    title: "Quota Exceeded",
    status: 429,
    detail: "The request exceeds the limit parent-rpm of 60 every 60 s; retry in 12 s.",
    "violated-policies": ["tpm", "parent-rpm", "search-rpm", "parent-search-rpm"],
    retry_after_ms: 11_001,
  });
});

it("says of a request that can never fit why that is", () => {
  const refusal = new RateLimitExceeded([
    status("tpm", { available: 60, requested: 500, retryAfterSeconds: Infinity }),
  ]);
  expect(refusalProblem(refusal)).toMatchObject({
    detail: "The request takes 500 of tpm, which never holds more than 60, so it can never fit.",
    "violated-policies": ["tpm"],
    retry_after_ms: null,
  });
  const leaving = { available: 60, requested: 5, leaves: 56, retryAfterSeconds: Infinity };
  expect(refusalProblem(new RateLimitExceeded([status("tpm", leaving)])).detail).toContain(
    "takes 5 of tpm and must leave 56, which",
  );
});

it.each([
  [{ every: "hour", zone: "UTC" }, 3.2, "an hour (UTC); retry in 4 s"],
  [{ every: "day", zone: "Europe/Berlin" }, 17_000, "a day (Europe/Berlin); retry in 284 min"],
  [{ every: "week", zone: "UTC" }, 400_000, "a week (UTC); retry in 112 h"],
  [{ every: "month", zone: "UTC", day: 15 }, 2_600_000, "a month (UTC); retry in 31 days"],
  [{ cron: "0 9 * * *", zone: "UTC" }, 61, "a window (cron 0 9 * * *, UTC); retry in 61 s"],
] as const)("says of a quota that resets %j when to retry", (resets, retryAfterSeconds, text) => {
  const limit = Limit.quota("tpd", 1000, resets);
  const refusal = new RateLimitExceeded([status("tpd", { limit, retryAfterSeconds })]);
  expect(refusalProblem(refusal).detail).toBe(`The request exceeds the quota tpd of 1000 ${text}.`);
});

it("says of a session how long it is, and of a quota what it can hold with what it carries", () => {
  const session = Limit.session("messages", 45, { windowSeconds: 18_000 });
  const refused = status("messages", { limit: session, retryAfterSeconds: 9 });
  expect(refusalProblem(new RateLimitExceeded([refused])).detail).toBe(
    "The request exceeds the limit messages of 45 in the 5 h after the first use; retry in 9 s.",
  );
  const limit = Limit.quota("tpd", 10, { every: "day", zone: "UTC" }, { carry: { unused: 5 } });
  const never = status("tpd", { limit, requested: 16, retryAfterSeconds: Infinity });
  expect(refusalProblem(new RateLimitExceeded([never])).detail).toContain("more than 15, so it");
});

it("contains no ids of entities, and no wait that is too short", () => {
  const secret = "entity-9f2b";
  fc.assert(
    fc.property(anyStatuses, (statuses) => {
      const renamed = statuses.map((each) => ({ ...each, entityId: `${secret}-${each.entityId}` }));
      if (!renamed.some(({ exceeded }) => exceeded)) return;
      const problem = refusalProblem(new RateLimitExceeded(renamed));
      expect(JSON.stringify(problem)).not.toContain(secret);
      for (const { exceeded, retryAfterSeconds } of renamed)
        if (exceeded && problem.retry_after_ms !== null)
          expect(problem.retry_after_ms / 1000).toBeGreaterThanOrEqual(retryAfterSeconds);
    }),
  );
});
