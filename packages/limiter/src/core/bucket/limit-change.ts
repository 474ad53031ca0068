import {
  apply,
  balanceMilli,
  ceilingMilli,
  getConsumedMilli,
  getStoredEndMs,
  isLimitFull,
  scaleRemainder,
  getStoredMilli,
  getStoredRemainder,
  type Bucket,
  type BucketLimit,
} from "./bucket.ts";
import { ValidationError } from "../errors.ts";
import { computeWindowEnd, convertWindow } from "./windows.ts";

/**
 * Carries a bucket over to another list of limits. However often the lists change, no tokens are
 * minted:
 *
 * - What a limit has earned so far, it earned at its old rate.
 * - A lowered capacity cuts the balance; that of a quota or session moves with the capacity.
 * - A limit that leaves the list stays in the bucket, hidden, so that only a limit that is new to
 *   the bucket starts full. It stays even when it is full. Otherwise three calls with overrides
 *   could fill it: lower its capacity to the balance, remove it, add it with its old capacity.
 *
 * With `keepCut`, a limit whose balance would be cut keeps its old parameters. A refusal needs
 * this: it must take nothing away, but must let the other limits earn at their new rates, or the
 * refused call might never fit.
 */
export function withLimits(
  bucket: Bucket,
  wanted: readonly BucketLimit[],
  nowMs: number,
  { keepCut = false } = {},
): Bucket {
  const old = apply(
    bucket,
    bucket.limits.map(() => 0),
    nowMs,
  );
  const limits: BucketLimit[] = [];
  const balances: number[] = [];
  const add = (limit: BucketLimit, tokens: number, remainder: number, consumed: number): void => {
    limits.push(limit);
    balances.push(tokens, remainder, consumed);
  };
  for (const limit of wanted) {
    const index = old.limits.findIndex((other) => other.limit.name === limit.limit.name);
    if (index < 0) add(limit, limit.capacityMilli, 0, 0);
    else if (keepCut && isCut(old, index, limit, nowMs))
      add({ ...old.limits[index]!, hidden: false }, ...getNumbers(old, index));
    else add(limit, ...convertLimit(old, index, limit, nowMs));
  }
  old.limits.forEach((limit, index) => {
    if (wanted.some((other) => other.limit.name === limit.limit.name)) return;
    if (limits.length >= MOST_LIMITS && isLimitFull(old, index, nowMs)) return;
    add(limit.hidden ? limit : { ...limit, hidden: true }, ...getNumbers(old, index));
  });
  const same =
    limits.length === wanted.length && limits.every((limit, index) => limit === wanted[index]);
  return { limits: same ? wanted : limits, refilledAtMs: old.refilledAtMs, balances };
}

/**
 * The limits of a call's override as its bucket may have them: an override changes capacities, and
 * rates, but neither the windows of a limit nor its kind. A limit that has become one of another
 * kind since the call was checked stays as it is.
 */
export function keepWindows(
  bucket: Bucket,
  wanted: readonly BucketLimit[],
): readonly BucketLimit[] {
  let kept = wanted;
  wanted.forEach((limit, index) => {
    const { name } = limit.limit;
    const held = bucket.limits.find((other) => !other.hidden && other.limit.name === name);
    if (held === undefined) return;
    if (held.window?.kind !== limit.window?.kind) {
      kept = kept.with(index, held);
      return;
    }
    if (held.window === undefined || held.window.definition === limit.window!.definition) return;
    const { capacityMilli } = limit;
    kept = kept.with(index, {
      ...held,
      capacityMilli,
      window: { ...held.window, capacityMilli },
      limit: { ...held.limit, capacity: limit.limit.capacity },
    });
  });
  return kept;
}

/** Refuses an override that would change the kind of a limit. */
export function checkKinds(bucket: Bucket | undefined, wanted: readonly BucketLimit[]): void {
  for (const { limit, window } of wanted) {
    const held = bucket?.limits.find((other) => !other.hidden && other.limit.name === limit.name);
    if (held === undefined || held.window?.kind === window?.kind) continue;
    throw new ValidationError(
      `limits.${limit.name}.kind`,
      limit.kind ?? "rate",
      `must be '${held.limit.kind ?? "rate"}', as it is stored: an override cannot change the kind of a limit`,
    );
  }
}

/**
 * A bucket with more limits than this drops hidden ones that are full, so that callers who keep
 * inventing names cannot fill the store.
 */
const MOST_LIMITS = 64;

type Numbers = readonly [tokens: number, state: number, consumed: number];

/** The three numbers of one limit, as stored. */
function getNumbers(bucket: Bucket, index: number): Numbers {
  const { window } = bucket.limits[index]!;
  const state =
    window === undefined ? getStoredRemainder(bucket, index) : getStoredEndMs(bucket, index);
  return [getStoredMilli(bucket, index), state, getConsumedMilli(bucket, index)];
}

/**
 * Whether a balance would be cut. That of a window moves with the capacity instead, and a limit of
 * another kind has to be there before the window can end in which a refused call may fit.
 */
function isCut(bucket: Bucket, index: number, limit: BucketLimit, nowMs: number): boolean {
  const isRate = limit.window === undefined && bucket.limits[index]!.window === undefined;
  return isRate && balanceMilli(bucket, index, nowMs) > limit.capacityMilli;
}

/**
 * The three numbers of one limit under new parameters. The remainder is in units of 1/period, so it
 * is scaled to the new period. A limit of another kind takes its balance along, a quota or session
 * into a window that opens now.
 */
function convertLimit(bucket: Bucket, index: number, limit: BucketLimit, nowMs: number): Numbers {
  const before = bucket.limits[index]!;
  const consumed = getConsumedMilli(bucket, index);
  const { window } = limit;
  if (window?.kind !== before.window?.kind) {
    const tokens = Math.min(limit.capacityMilli, balanceMilli(bucket, index, nowMs));
    return [tokens, window === undefined ? 0 : computeWindowEnd(window, nowMs, 0), consumed];
  }
  if (window !== undefined) {
    const [stored, endMs] = getNumbers(bucket, index);
    const state = convertWindow(before.window!, { storedMilli: stored, endMs }, window, nowMs);
    return [state.storedMilli, state.endMs, consumed];
  }
  const ceiling = ceilingMilli(limit);
  const tokens = Math.min(ceiling, getStoredMilli(bucket, index));
  const remainder =
    tokens >= ceiling
      ? 0
      : scaleRemainder(getStoredRemainder(bucket, index), before.period, limit.period);
  return [tokens, remainder, consumed];
}
