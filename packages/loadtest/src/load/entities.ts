import { ValidationError } from "zae-limiter";
import { seededRandom } from "zae-limiter/testing";
import { checkWhole } from "./shapes.ts";

/** Chooses the entity of the next call. */
export type EntityPicker = () => string;

/** Whom a distribution chooses from. The same seed makes the same choices. */
export interface EntityOptions {
  /** How many entities there are. */
  readonly count: number;
  /** The beginning of their ids. @default "user-" */
  readonly prefix?: string;
  /** Where the choices begin. @default 1 */
  readonly seed?: number;
}

/** A spiker's quiet and busy times. */
export interface SpikerOptions {
  /** The part of the minutes in which a burst begins. @default 0.1 */
  readonly probability?: number;
  /** How long a burst lasts, in seconds. @default 30 */
  readonly burstSeconds?: number;
  /** Where the choices begin. @default 1 */
  readonly seed?: number;
}

/** More entities than this would only fill the memory of the generator. */
const MOST_ENTITIES = 10_000_000;

/**
 * Every entity is equally likely.
 * @example const pick = uniform({ count: 100 });
 */
export function uniform(options: EntityOptions): EntityPicker {
  const { count, random, prefix } = prepare(options);
  return () => `${prefix}${Math.floor(random() * count)}`;
}

/**
 * The first entities are chosen far more often than the last: the n-th one has a weight of
 * n^−exponent.
 * @example const pick = zipf({ count: 16_000, exponent: 1.5 });
 */
export function zipf({
  exponent = 1.5,
  ...options
}: EntityOptions & {
  /** How steeply the weights fall. @default 1.5 */
  readonly exponent?: number;
}): EntityPicker {
  const { count, random, prefix } = prepare(options);
  if (!(exponent > 0 && exponent <= 10))
    throw new ValidationError("exponent", exponent, "must be above 0, and at most 10");
  const sums = new Float64Array(count);
  for (let index = 0, sum = 0; index < count; index += 1)
    sums[index] = sum += (index + 1) ** -exponent;
  return () => `${prefix}${findIndex(sums, random() * sums[count - 1]!)}`;
}

/**
 * One entity makes a part of all calls; the others are chosen by another distribution.
 * @example const pick = whale({ share: 0.5, others: zipf({ count: 16_000 }) });
 */
export function whale({
  share = 0.5,
  entityId = "whale",
  others,
  seed = 1,
}: {
  /** The part of the calls that the whale makes. @default 0.5 */
  readonly share?: number;
  /** Its id. @default "whale" */
  readonly entityId?: string;
  /** Chooses the entity of the other calls. */
  readonly others: EntityPicker;
  /** Where the choices begin. @default 1 */
  readonly seed?: number;
}): EntityPicker {
  checkPart("share", share);
  const random = seededRandom(seed);
  return () => (random() < share ? entityId : others());
}

/**
 * Whether an entity is in a burst at a time: in some minutes, at random, it is for a while.
 * @example const isBursting = spiker({ probability: 0.1, burstSeconds: 30 })("spiker-1", 90);
 */
export function spiker({ probability = 0.1, burstSeconds = 30, seed = 1 }: SpikerOptions = {}): (
  entityId: string,
  atSeconds: number,
) => boolean {
  checkPart("probability", probability);
  checkWhole("burstSeconds", burstSeconds, 60);
  return (entityId, atSeconds) => {
    if (atSeconds % 60 >= burstSeconds) return false;
    return seededRandom(hash(`${seed}:${entityId}:${Math.floor(atSeconds / 60)}`))() < probability;
  };
}

function prepare({ count, prefix = "user-", seed = 1 }: EntityOptions): {
  readonly count: number;
  readonly prefix: string;
  readonly random: () => number;
} {
  checkWhole("count", count, MOST_ENTITIES);
  return { count, prefix, random: seededRandom(seed) };
}

function checkPart(field: string, value: unknown): void {
  if (!(typeof value === "number" && value >= 0 && value <= 1))
    throw new ValidationError(field, value, "must be from 0 to 1");
}

/** The first index whose sum is above the value. */
function findIndex(sums: Float64Array, value: number): number {
  let [low, high] = [0, sums.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sums[middle]! > value) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** FNV-1a. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (const letter of text) value = Math.imul(value ^ letter.codePointAt(0)!, 0x01000193);
  return value >>> 0;
}
