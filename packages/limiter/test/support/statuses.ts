import * as fc from "fast-check";
import type { LimitStatus } from "../../src/core/bucket/decision.ts";
import { anyCalendar } from "./any-limit.ts";

/** A status of `key-1` on `chat` with plenty left, but for what is given. */
export function status(name: string, given: Partial<LimitStatus> = {}): LimitStatus {
  const { retryAfterSeconds = 0 } = given;
  return {
    entityId: "key-1",
    resource: "chat",
    limitName: name,
    limit: { name, capacity: 60, refillAmount: 60, refillPeriodSeconds: 60 },
    source: "system",
    kind: given.limit?.kind ?? "rate",
    resetsAt: undefined,
    resetsInSeconds: undefined,
    available: 59,
    requested: 1,
    leaves: 0,
    exceeded: retryAfterSeconds > 0,
    deficit: 0,
    retryAfterSeconds,
    ...given,
  };
}

/** Whole numbers from 1 to far above what a structured field can hold. */
const count = fc.oneof(
  fc.integer({ min: 1, max: 1000 }),
  fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }),
  fc.constantFrom(999_999_999_999_999, 1e15, 1e18),
);

/** Any text may be a name here: the functions are pure, and must be right for all of them. */
const name = fc.oneof(
  fc.constantFrom("rpm", "tpm", "itpm", "otpm"),
  fc.string({ minLength: 1, maxLength: 8 }),
  fc.string({ minLength: 1, maxLength: 8, unit: "binary" }),
  fc.constantFrom('a"b', "a\\b", "100%", "naïve", "a\u0000b", "\ud800"),
);

const wait = fc.oneof(
  fc.constant(0),
  fc.constant(Infinity),
  fc.integer({ min: 1, max: 200_000 }).map((ms) => ms / 1000),
  fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }).map((ms) => ms / 1000),
);

/** Rates, quotas and sessions, also larger ones than can be stored. */
const anyShownLimit: fc.Arbitrary<LimitStatus["limit"]> = fc.oneof(
  fc.record({ name, capacity: count, refillAmount: count, refillPeriodSeconds: count }),
  fc.record({ name, capacity: count, kind: fc.constant("quota"), resets: anyCalendar() }),
  fc.record({ name, capacity: count, kind: fc.constant("session"), windowSeconds: count }),
);

/** The time of all statuses. */
export const STATUSES_MS = Date.UTC(2026, 10, 16, 15, 30, 0, 250);

const anyStatus: fc.Arbitrary<LimitStatus> = fc
  .record({
    entityId: fc.constantFrom("key-1", "org-1"),
    resource: fc.constantFrom("chat", "search"),
    limit: anyShownLimit,
    openMs: fc.option(fc.integer({ min: 1, max: 366 * 86_400_000 }), { nil: undefined }),
    available: fc.oneof(
      fc.constant("full" as const),
      fc.constant(0),
      count,
      count.map((n) => -n),
    ),
    retryAfterSeconds: wait,
  })
  .map(({ entityId, resource, limit, openMs, available, retryAfterSeconds }) =>
    status(limit.name, {
      entityId,
      resource,
      limit,
      available: available === "full" ? limit.capacity : Math.min(available, limit.capacity),
      retryAfterSeconds,
      ...(limit.kind !== undefined &&
        openMs !== undefined && {
          resetsAt: new Date(STATUSES_MS + openMs),
          resetsInSeconds: openMs / 1000,
        }),
    }),
  );

/** The statuses of any call: in debt, full, with and without a wait or window that ends. */
export const anyStatuses: fc.Arbitrary<readonly [LimitStatus, ...LimitStatus[]]> = fc
  .tuple(
    anyStatus.map((first) => ({ ...first, entityId: "key-1", resource: "chat" })),
    fc.array(anyStatus, { maxLength: 4 }),
  )
  .map(([first, rest]) => withFirst(first, rest));

function withFirst(
  first: LimitStatus,
  rest: readonly LimitStatus[],
): readonly [LimitStatus, ...LimitStatus[]] {
  return [first, ...rest];
}

/** A text as UTF-8 keeps it: halves of surrogate pairs are replaced. */
export function wellFormed(text: string): string {
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(new TextEncoder().encode(text));
}
