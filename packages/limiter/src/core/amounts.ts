import { ValidationError } from "./errors.ts";

/** Whole tokens by limit name. */
export type Amounts = Readonly<Record<string, number>>;

/** Buckets count in thousandths of a token. */
export const MILLI = 1000;

/** The largest amount whose millitokens are still exact. */
export const MAX_AMOUNT = Math.floor(Number.MAX_SAFE_INTEGER / MILLI);

/** Nothing, of no limit. */
export const NO_AMOUNTS: Amounts = Object.freeze({});

/**
 * A copy of amounts that were checked: what a caller does to its own object later changes nothing.
 */
export function copiedAmounts(amounts: unknown, field: string): Amounts {
  const copy = copied(amounts);
  checkAmounts(copy, field);
  return copy;
}

/** The same for signed amounts. */
export function copiedDeltas(deltas: unknown, field: string): Amounts {
  const copy = copied(deltas);
  checkDeltas(copy, field);
  return copy;
}

/** Checks amounts that must not be negative; `field` names the argument in the error. */
export function checkAmounts(amounts: unknown, field: string): asserts amounts is Amounts {
  checkNumbers(amounts, field, 0);
}

/** Checks signed amounts. */
export function checkDeltas(deltas: unknown, field: string): asserts deltas is Amounts {
  checkNumbers(deltas, field, -MAX_AMOUNT);
}

/** The amount of one limit; 0 when it is not named. Safe for names such as `constructor`. */
export function amountOf(amounts: Amounts, name: string): number {
  const amount: unknown = amounts[name];
  // What every object inherits under such a name is a function. Asking `Object.hasOwn` first
  // doubles the time: 14 ns against 7.
  return typeof amount === "number" ? amount : 0;
}

/** Throws when a name is not among the known ones, with the known ones in the message. */
export function checkNames(amounts: Amounts, known: ReadonlySet<string>, field: string): void {
  for (const name in amounts) {
    if (!known.has(name))
      throw new ValidationError(
        `${field}.${name}`,
        name,
        `no such limit; the limits are ${[...known].join(", ")}`,
      );
  }
}

/** Adds two amounts, name by name. */
export function addAmounts(left: Amounts, right: Amounts): Amounts {
  const sum = new Map(Object.entries(left));
  for (const [name, amount] of Object.entries(right)) sum.set(name, (sum.get(name) ?? 0) + amount);
  return Object.fromEntries(sum);
}

/** Amounts of tokens in millitokens. */
export function inMilli(amounts: Amounts): Amounts {
  const milli: Record<string, number> = {};
  for (const name in amounts) milli[name] = amounts[name]! * MILLI;
  return milli;
}

/** Copied before it is checked: a getter could answer the check and the charge differently. */
function copied(amounts: unknown): unknown {
  return typeof amounts === "object" && amounts !== null && !(Symbol.iterator in amounts)
    ? { ...amounts }
    : amounts;
}

function checkNumbers(amounts: unknown, field: string, least: number): void {
  // Lists, maps and sets have no members of their own, and would be taken for a call that costs
  // nothing.
  if (typeof amounts !== "object" || amounts === null || Symbol.iterator in amounts) {
    throw new ValidationError(
      field,
      amounts,
      "must be an object of whole numbers by limit name, such as { rpm: 1 }",
    );
  }
  for (const name in amounts) {
    const amount: unknown = (amounts as Record<string, unknown>)[name];
    if (
      typeof amount === "number" &&
      Number.isInteger(amount) &&
      amount >= least &&
      amount <= MAX_AMOUNT
    )
      continue;
    throw new ValidationError(`${field}.${name}`, amount, faultOf(amount, least));
  }
}

function faultOf(amount: unknown, least: number): string {
  if (typeof amount !== "number")
    return `must be a number, not ${amount === null ? "null" : typeof amount}`;
  if (!Number.isFinite(amount)) return "must be finite";
  if (!Number.isInteger(amount)) return "must be a whole number";
  if (least === 0 && amount < 0) return "must not be negative";
  return `must be at most ${MAX_AMOUNT}`;
}
