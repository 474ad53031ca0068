import * as fc from "fast-check";
import { MAX_AMOUNT } from "../../src/core/amounts.ts";
import { WEEKDAYS } from "../../src/core/calendar.ts";
import { checkLimit } from "../../src/core/check-limit.ts";
import { checkCron } from "../../src/core/cron.ts";
import type { AnyLimit, Calendar, Profile } from "../../src/core/limit-kinds.ts";
import { magnitude, validLimit } from "./arbitraries.ts";

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
    fc.record(
      { zone, ...parts },
      {
        requiredKeys: ["zone", ...requiredKeys] as never[],
      },
    );
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

function field(least: number, most: number, names: readonly string[] = []): fc.Arbitrary<string> {
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
    .tuple(fc.record({ when, zone: ZONE }), numbers)
    .map((parts) => Object.assign({}, ...parts) as Profile);
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
    fc.record(
      { name: NAME, capacity: amount, ...parts, ...options, ...lists },
      {
        requiredKeys: ["name", "capacity", ...Object.keys(parts)].filter(
          (key) => key !== "alerts" && key !== "carry",
        ) as never[],
      },
    );
  const kinds = fc.oneof(
    validLimit().chain(({ refillAmount, refillPeriodSeconds }) =>
      record({
        refillAmount: fc.constant(refillAmount),
        refillPeriodSeconds: fc.constant(refillPeriodSeconds),
      }),
    ),
    record({ kind: fc.constant("quota"), resets: anyCalendar(), carry, alerts }),
    record({
      kind: fc.constant("session"),
      windowSeconds: fc.integer({ min: 1, max: 366 * 86_400 }),
      alerts,
    }),
    record({ kind: fc.constant("inflight"), holdSeconds: fc.integer({ min: 10, max: 86_400 }) }),
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
