import { Limit, RateLimiter, type RateLimitExceeded } from "zae-limiter";
import { MemoryRepository } from "zae-limiter/memory";
import { ManualClock } from "zae-limiter/testing";
import { expect, it } from "vitest";
import { PermissionDenied, RateLimiterUnavailable, ValidationError } from "../../core/errors.ts";
import { buildRefusalResponse } from "./build-refusal-response.ts";

/** The refusal of a call that wants this many tokens, of 60 a minute and at most 120. */
async function getRefusal(tokens: number): Promise<RateLimitExceeded> {
  const limiter = new RateLimiter({
    repository: new MemoryRepository({ clock: new ManualClock() }),
  });
  const call = {
    entityId: "secret-key",
    resource: "gpt-5",
    limits: [Limit.perMinute("tpm", 60, { burst: 120 })],
  };
  await (await limiter.acquire({ ...call, consume: { tpm: 120 } })).commit();
  const result = await limiter.tryAcquire({ ...call, consume: { tpm: tokens } });
  if (result.granted) throw new Error("It was granted.");
  return result.refusal;
}

const listFields = ({ headers }: Response): unknown[] =>
  ["retry-after-ms", "retry-after", "x-should-retry"].map((name) => headers.get(name));

it.each([
  [1, ["1000", "1", null]],
  [60, ["60000", "60", null]],
  [61, ["61000", "61", "false"]],
  [121, [null, null, "false"]],
])("a wait for %i tokens is in the headers: %j", async (tokens, fields) => {
  expect(listFields(buildRefusalResponse(await getRefusal(tokens), "openai"))).toEqual(fields);
});

it("sends exact milliseconds, and seconds that are never too early", async () => {
  const clock = new ManualClock();
  const limiter = new RateLimiter({ repository: new MemoryRepository({ clock }) });
  const limits = [Limit.perMinute("tpm", 60)];
  const call = { entityId: "key-1", resource: "gpt-5", limits, consume: { tpm: 60 } };
  await (await limiter.acquire(call)).commit();
  await clock.advance(567);
  const result = await limiter.tryAcquire({ ...call, consume: { tpm: 2 } });
  const response = buildRefusalResponse(result.granted ? undefined : result.refusal, "anthropic");
  expect(listFields(response)).toEqual(["1433", "2", null]);
});

it.each([
  [
    "openai",
    {
      error: { message: expect.any(String), type: "rate_limit_error", code: "rate_limit_exceeded" },
    },
  ],
  [
    "anthropic",
    { type: "error", error: { type: "rate_limit_error", message: expect.any(String) } },
  ],
] as const)("a refusal has the shape of %s, and names no entity", async (provider, shape) => {
  const response = buildRefusalResponse(await getRefusal(7), provider);
  const text = await response.text();
  expect(response.status).toBe(429);
  expect(response.headers.get("content-type")).toBe("application/json");
  expect(JSON.parse(text)).toMatchObject(shape);
  expect(text).toContain("retry in 7 s");
  expect(text).not.toContain("secret-key");
});

it("a mistake is a bad request in our words, and an outage is reported without ids", async () => {
  const mistake = new ValidationError("consume.tpm", "tpm", "is not a limit of this call");
  const bad = buildRefusalResponse(mistake, "anthropic");
  expect(bad.status).toBe(400);
  expect(listFields(bad)).toEqual([null, null, "false"]);
  expect(await bad.json()).toEqual({
    type: "error",
    error: { type: "invalid_request_error", message: mistake.message },
    request_id: null,
  });

  const outage = buildRefusalResponse(
    new RateLimiterUnavailable("The store is away.", { entityId: "secret-key" }),
    "openai",
  );
  expect(outage.status).toBe(503);
  expect(listFields(outage)).toEqual([null, null, null]);
  const message =
    "The limits of this call cannot be checked, so it was not made (ERR_LIMITER_UNAVAILABLE).";
  const code = "ERR_LIMITER_UNAVAILABLE";
  expect(await outage.json()).toEqual({
    error: { message, type: "server_error", param: null, code },
  });

  const closed = buildRefusalResponse(
    new RateLimiterUnavailable("This limiter was closed."),
    "openai",
  );
  expect([closed.status, ...listFields(closed)]).toEqual([503, null, null, "false"]);
  expect(await closed.json()).toMatchObject({ error: { message: "This limiter was closed." } });

  const denied = buildRefusalResponse(new PermissionDenied("secret-key"), "openai");
  expect([denied.status, ...listFields(denied)]).toEqual([503, null, null, "false"]);
});

it("an error of the application stays what it is", () => {
  const error = new Error("Not signed in.");
  expect(() => buildRefusalResponse(error, "openai")).toThrow(error);
});
