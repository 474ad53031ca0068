import * as fc from "fast-check";
import { MAX_AMOUNT } from "../../src/core/amounts.ts";
import { WEEKDAYS } from "../../src/core/calendar.ts";
import { checkLimit } from "../../src/core/check-limit.ts";
import { checkCron } from "../../src/core/cron.ts";
import {
  type AnyLimit,
  type Calendar,
  type Profile,
  type RateLimit,
} from "../../src/core/limit-kinds.ts";

const SAFE = BigInt(Number.MAX_SAFE_INTEGER);

/** Numbers of every magnitude: a uniform choice up to 9·10^12 would never try a small one. */
export function magnitude(most: number): fc.Arbitrary<number> {
  const steps = [1, 10, 1000, 1_000_000, 1_000_000_000, most].filter((step) => step <= most);
  return fc.oneof(
    ...steps.map((step) => fc.integer({ min: 1, max: step })),
    fc.integer({ min: Math.max(1, most - 10), max: most }),
  );
}

/** Every limit that the library accepts, the largest too. */
export function validLimit(name = "tpm"): fc.Arbitrary<RateLimit> {
  return magnitude(MAX_AMOUNT)
    .chain((refillAmount) =>
      fc.record({
        name: fc.constant(name),
        capacity: magnitude(MAX_AMOUNT),
        refillAmount: fc.constant(refillAmount),
        refillPeriodSeconds: magnitude(longestPeriod(refillAmount)),
      }),
    )
    .filter(isExact);
}

/** Limits as people set them: small numbers, so that many steps reach full, empty and debt. */
export function smallLimit(name = "tpm"): fc.Arbitrary<RateLimit> {
  return fc.record({
    name: fc.constant(name),
    capacity: fc.integer({ min: 1, max: 100 }),
    refillAmount: fc.integer({ min: 1, max: 100 }),
    refillPeriodSeconds: fc.integer({ min: 1, max: 100 }),
  });
}

/** Design §4: a limit whose `(a + 1)·p` leaves the safe range is refused. */
function isExact({ refillAmount, refillPeriodSeconds }: RateLimit): boolean {
  const [amount, period] = [BigInt(refillAmount), BigInt(refillPeriodSeconds)];
  const divisor = gcd(amount, period);
  return (amount / divisor + 1n) * (period / divisor) <= SAFE;
}

function longestPeriod(refillAmount: number): number {
  return Math.min(
    MAX_AMOUNT,
    Math.max(1, Math.floor(Number.MAX_SAFE_INTEGER / (refillAmount + 1))),
  );
}

function gcd(left: bigint, right: bigint): bigint {
  return right === 0n ? left : gcd(right, left % right);
}

const NAME = fc.stringMatching(/^[A-Za-z][A-Za-z0-9_.-]{0,6}$/).filter((name) => name !== "wcu");
const ZONE = fc.constantFrom("UTC", "Europe/Berlin", "Etc/GMT+5", "America/Port-au-Prince");
const TIME = fc
  .tuple(fc.integer({ min: 0, max: 23 }), fc.integer({ min: 0, max: 59 }))
  .map((parts) => parts.map((part) => String(part).padStart(2, "0")).join(":"));

/** Every calendar, with its defaults written and left out. */
export function anyCalendar(zone: fc.Arbitrary<string> = ZONE): fc.Arbitrary<Calendar> {
  const weekday = fc.constantFrom(...WEEKDAYS);
  const day = fc.integer({ min: 1, max: 31 });
  const record = (parts: object, requiredKeys: readonly string[]): fc.Arbitrary<object> =>
    fc.record({ zone, ...parts } as Record<string, fc.Arbitrary<unknown>>, {
      requiredKeys: ["zone", ...requiredKeys] as never[],
    });
  return fc.oneof(
    record({ every: fc.constant("hour") }, ["every"]),
    record({ every: fc.constant("day"), at: TIME }, ["every"]),
    record({ every: fc.constant("week"), weekday, at: TIME }, ["every"]),
    record({ every: fc.constant("month"), day, at: TIME }, ["every"]),
    record({ cron: anyCron() }, ["cron"]),
  ) as fc.Arbitrary<Calendar>;
}

/** Expressions that are valid, and written as they are returned. */
function anyCron(): fc.Arbitrary<string> {
  const field = (least: number, most: number, names: readonly string[] = []) => {
    const value = fc.oneof(
      fc.integer({ min: least, max: most }).map(String),
      ...names.map(fc.constant),
    );
    const range = fc.tuple(value, value).map(([from, to]) => `${from}-${to}`);
    const step = fc
      .tuple(fc.oneof(fc.constant("*"), range), fc.integer({ min: 1, max: most }))
      .map(([from, every]) => `${from}/${every}`);
    const part = fc.oneof(value, range, step);
    return fc.oneof(fc.constant("*"), fc.array(part, { minLength: 1, maxLength: 3 }).map(String));
  };
  return fc
    .tuple(
      field(0, 59),
      field(0, 23),
      field(1, 31),
      field(1, 12, ["jan", "feb", "dec"]),
      field(0, 7, ["sun", "mon", "fri", "sat"]),
    )
    .map((fields) => fields.join(" "))
    .filter((cron) => isValid(() => checkCron(cron, "cron")));
}

function anyProfile(): fc.Arbitrary<Profile> {
  const days = fc.constantFrom("mon-fri", "sat,sun", "fri-mon,wed");
  const hours = fc.tuple(TIME, TIME).map(([from, to]) => `${from}-${to}`);
  const when = fc.oneof(
    days,
    hours,
    fc.tuple(days, hours).map((parts) => parts.join(" ")),
  );
  const numbers = fc.oneof(
    fc.record({ percent: fc.integer({ min: 1, max: 10_000 }) }),
    fc.record(
      { capacity: magnitude(MAX_AMOUNT), refillAmount: magnitude(MAX_AMOUNT) },
      { requiredKeys: ["capacity"] },
    ),
  );
  return fc
    .tuple(when, ZONE, numbers)
    .map(([hoursOf, zone, rest]) => ({ when: hoursOf, zone, ...rest }) as Profile);
}

/** Valid limits of every kind with every option, as they are returned: without their defaults. */
export function anyLimit(): fc.Arbitrary<AnyLimit> {
  const amount = magnitude(MAX_AMOUNT);
  const percents = fc.uniqueArray(fc.integer({ min: 1, max: 200 }), { maxLength: 8 });
  const alerts = percents.map((levels) => levels.toSorted((left, right) => left - right));
  const carry = fc.record({ debt: fc.boolean(), unused: amount }, { requiredKeys: [] });
  const options = { counts: NAME, soft: fc.boolean() };
  const lists = {
    schedule: fc.array(anyProfile(), { maxLength: 3 }),
    reserve: fc.dictionary(NAME, amount, { maxKeys: 3 }),
  };
  const record = (parts: object): fc.Arbitrary<object> =>
    fc.record({ name: NAME, capacity: amount, ...parts, ...options, ...lists } as object, {
      requiredKeys: ["name", "capacity", ...Object.keys(parts)].filter(
        (key) => key !== "alerts" && key !== "carry",
      ) as never[],
    });
  const seconds = (min: number, max: number) => fc.integer({ min, max });
  const kinds = fc.oneof(
    validLimit().chain(({ refillAmount, refillPeriodSeconds }) =>
      record({
        refillAmount: fc.constant(refillAmount),
        refillPeriodSeconds: fc.constant(refillPeriodSeconds),
      }),
    ),
    record({ kind: fc.constant("quota"), resets: anyCalendar(), carry, alerts }),
    record({ kind: fc.constant("session"), windowSeconds: seconds(1, 366 * 86_400), alerts }),
    record({ kind: fc.constant("inflight"), holdSeconds: seconds(10, 86_400) }),
  ) as fc.Arbitrary<AnyLimit>;
  return kinds
    .filter((limit) => isValid(() => checkLimit(limit)))
    .map((limit) => checkLimit(limit));
}

function isValid(check: () => unknown): boolean {
  try {
    check();
    return true;
  } catch {
    return false;
  }
}
