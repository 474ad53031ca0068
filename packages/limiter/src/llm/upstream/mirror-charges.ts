import { MAX_AMOUNT, type Amounts } from "../../core/amounts.ts";
import type { LimitStatus } from "../../core/bucket/decision.ts";
import type { UpstreamKind, UpstreamLimit, UpstreamLimits } from "./upstream-limits.ts";

/** The name of the account's limit for each kind of a provider's limit. */
export type LimitNames = Readonly<Record<UpstreamKind, string>>;

/** Differences below this share of a limit are ignored: Anthropic rounds what is left. */
const IGNORED_SHARE = 0.01;

/** The pause after a 429 that does not say how long. Who is refused again then pauses again. */
const UNTOLD_PAUSE_MS = 1000;

/**
 * What to charge so that the account holds no more than its provider says is left. `statuses` are
 * the account's limits, read just now.
 */
export function missingAmounts(
  seen: UpstreamLimits,
  names: LimitNames,
  statuses: readonly LimitStatus[],
): Amounts {
  const amounts: Record<string, number> = {};
  for (const { status, told } of mirroredLimits(seen, names, statuses)) {
    // That nothing is left is believed of a limit that is named beside it, and of no other:
    // Azure says 0 of limits that it does not tell.
    if (told?.remaining === undefined || (told.remaining === 0 && told.limit === undefined))
      continue;
    const difference = status.available - told.remaining;
    if (difference >= Math.max(1, status.limit.capacity * IGNORED_SHARE))
      raise(amounts, status.limitName, difference);
  }
  return amounts;
}

/** How long each limit of the account is to pause after a 429, in milliseconds by its name. */
export function pausesOf(
  seen: UpstreamLimits,
  names: LimitNames,
  statuses: readonly LimitStatus[],
): Readonly<Record<string, number>> {
  const mirrored = mirroredLimits(seen, names, statuses);
  const exhausted = mirrored.filter(({ told }) => told?.remaining === 0);
  const pauses: Record<string, number> = {};
  for (const { status, told } of exhausted.length > 0 ? exhausted : mirrored)
    raise(
      pauses,
      status.limitName,
      seen.retryAfterMs ?? Math.min(UNTOLD_PAUSE_MS, told?.fullAfterMs ?? UNTOLD_PAUSE_MS),
    );
  return pauses;
}

/**
 * What to charge so that a limit has no whole token for this long: what it holds, and what it earns
 * meanwhile.
 */
export function amountFor(pauseMs: number, { available, limit }: LimitStatus): number {
  const earned = Math.ceil((pauseMs * limit.refillAmount) / (limit.refillPeriodSeconds * 1000));
  return Math.min(Math.max(0, available + earned), MAX_AMOUNT);
}

/** Sets an amount, unless a higher one is there: two kinds may share a limit. */
export function raise(amounts: Record<string, number>, name: string, amount: number): void {
  amounts[name] = Math.max(amounts[name] ?? 0, amount);
}

/** The limits that the account has and a name stands for, and what the answer says of each. */
function mirroredLimits(
  seen: UpstreamLimits,
  names: LimitNames,
  statuses: readonly LimitStatus[],
): readonly { readonly status: LimitStatus; readonly told: UpstreamLimit | undefined }[] {
  return (Object.keys(names) as UpstreamKind[]).flatMap((kind) => {
    const status = statuses.find(({ limitName }) => limitName === names[kind]);
    return status === undefined ? [] : [{ status, told: seen[kind] }];
  });
}
