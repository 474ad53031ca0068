import { getAmount, MAX_AMOUNT, type Amounts } from "../../core/amounts.ts";
import type { LimitStatus } from "../../core/bucket/decision.ts";
import type { Limit } from "../../core/limit.ts";
import type { UpstreamKind, UpstreamLimit, UpstreamLimits } from "./upstream-limits.ts";

/** The name of the account's limit for each kind of a provider's limit. */
export type LimitNames = Readonly<Record<UpstreamKind, string>>;

/** What a 429 causes. */
export interface Pause {
  /** The limits of the account whose pause begins, and how long it lasts. */
  readonly begins: readonly string[];
  readonly pauseMs: number;
  /** The limits that pause already, and how many milliseconds are left of it. */
  readonly lasts: ReadonlyMap<string, number>;
  /** What the call had reserved and has given back. */
  readonly givenBack: Amounts;
}

/** Differences below this share of a limit are ignored: Anthropic rounds what is left. */
const IGNORED_SHARE = 0.01;

/**
 * The shortest pause after a 429, and the pause after one that does not say how long. Providers say
 * when the call that they refused fits, which may be in a few milliseconds. A client that pauses
 * only for that time is refused again a few calls later, as long as others use the account: in
 * `fleet-simulation.test.ts` 185 to 416 of 1000 calls, instead of 30 to 82. The provider's bucket
 * fills meanwhile, so nothing of its rate is lost.
 */
const MIN_PAUSE_MS = 1000;

/**
 * What to take so that the account holds no more than its provider says is left, and has no whole
 * token of a limit that pauses until its pause is over. `statuses` are the account's limits, read
 * just now.
 */
export function amountsToTake(
  seen: UpstreamLimits,
  names: LimitNames,
  statuses: readonly LimitStatus[],
  pause: Pause | undefined,
): Amounts {
  const amounts: Record<string, number> = {};
  for (const { status, told } of listMirroredLimits(seen, names, statuses)) {
    const { limitName, limit, available } = status;
    const amount = Math.max(
      computeSurplus(told, available, limit.capacity),
      pause === undefined ? 0 : shortOfPause(pause, status),
      amounts[limitName] ?? 0, // two kinds may share a limit
    );
    if (amount > 0) amounts[limitName] = Math.min(amount, MAX_AMOUNT);
  }
  return amounts;
}

/** What is there of these amounts. The rest would be debt. */
export function amountsThere(amounts: Amounts, statuses: readonly LimitStatus[]): Amounts {
  const there: Record<string, number> = {};
  for (const { limitName, available } of statuses) {
    const amount = Math.min(getAmount(amounts, limitName), available);
    if (amount > 0) there[limitName] = amount;
  }
  return there;
}

/**
 * The limits that a take is decided by, if the account is in debt: one in debt would refuse takes
 * of the others too, and then each of several processes would charge what only one can take.
 */
export function limitsBesideDebt(statuses: readonly LimitStatus[]): {
  readonly limits?: readonly Limit[];
} {
  const debtless = statuses.filter(({ available }) => available >= 0);
  if (debtless.length === statuses.length) return {};
  return { limits: debtless.map(({ limit }) => limit) };
}

/** Which limits of the account a 429 pauses: those of which nothing is left, or else all. */
export function limitsToPause(
  seen: UpstreamLimits,
  names: LimitNames,
  statuses: readonly LimitStatus[],
): readonly string[] {
  const mirrored = listMirroredLimits(seen, names, statuses);
  const exhausted = mirrored.filter(({ told }) => told?.remaining === 0);
  return (exhausted.length > 0 ? exhausted : mirrored).map(({ status }) => status.limitName);
}

/** How long a 429 pauses. */
export function computePauseMs({ retryAfterMs = 0 }: UpstreamLimits, maxPauseMs: number): number {
  return Math.min(Math.max(retryAfterMs, MIN_PAUSE_MS), maxPauseMs);
}

/** What the account holds more than its provider says is left; 0 if that says too little. */
function computeSurplus(
  told: UpstreamLimit | undefined,
  available: number,
  capacity: number,
): number {
  // That nothing is left is believed of a limit that is named beside it, and of no other: Azure
  // says 0 of limits that it does not tell.
  if (told?.remaining === undefined || (told.remaining === 0 && told.limit === undefined)) return 0;
  const surplus = available - told.remaining;
  return surplus >= capacity * IGNORED_SHARE ? surplus : 0;
}

/**
 * What a limit holds more than it may until its pause is over. Of a pause that lasts, that is what
 * calls that were under way gave back, which would end it. Each of them takes its own part again:
 * four processes that each took all of it made pauses of 6 s last for 26 s.
 */
function shortOfPause(pause: Pause, { limitName, limit, available }: LimitStatus): number {
  if (pause.begins.includes(limitName)) return available + computeEarnings(pause.pauseMs, limit);
  const lastsMs = pause.lasts.get(limitName);
  if (lastsMs === undefined) return 0;
  return Math.min(
    available + computeEarnings(lastsMs, limit),
    getAmount(pause.givenBack, limitName),
  );
}

/** What flows back in a time, rounded up to whole tokens. */
function computeEarnings(ms: number, { refillAmount, refillPeriodSeconds }: Limit): number {
  return Math.ceil((ms * refillAmount) / (refillPeriodSeconds * 1000));
}

/** The limits that the account has and a name stands for, and what the answer says of each. */
function listMirroredLimits(
  seen: UpstreamLimits,
  names: LimitNames,
  statuses: readonly LimitStatus[],
): readonly { readonly status: LimitStatus; readonly told: UpstreamLimit | undefined }[] {
  return (Object.keys(names) as UpstreamKind[]).flatMap((kind) => {
    const status = statuses.find(({ limitName }) => limitName === names[kind]);
    return status === undefined ? [] : [{ status, told: seen[kind] }];
  });
}
