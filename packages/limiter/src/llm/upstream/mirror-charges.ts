import { getAmount, MAX_AMOUNT, type Amounts } from "../../core/amounts.ts";
import type { LimitStatus } from "../../core/bucket/decision.ts";
import { isRate, type RateLimit } from "../../core/limit-kinds.ts";
import type { Limit } from "../../core/limit.ts";
import type { UpstreamKind, UpstreamLimit, UpstreamLimits } from "./upstream-limits.ts";

/** The name of the account's limit for each kind of a provider's limit. */
export type LimitNames = Readonly<Record<UpstreamKind, string>>;

/** The pause that a 429 causes. */
export interface Pause {
  /** The limits of the account whose pause begins, and how long it lasts. */
  readonly begins: readonly string[];
  readonly pauseMs: number;
  /** The limits that pause already, and how many milliseconds are left of it. */
  readonly lasts: ReadonlyMap<string, number>;
  /** What the call had reserved and gave back. */
  readonly givenBack: Amounts;
}

/** Differences below this share of a limit are ignored: Anthropic rounds what is left. */
const IGNORED_SHARE = 0.01;

/**
 * The shortest pause after a 429, and the pause after one without a hint. Providers report when the
 * refused call would fit, which may be in a few milliseconds. A client that pauses only for that
 * time is refused again a few calls later, as long as others use the account: in
 * `fleet-simulation.test.ts` 185 to 416 of 1000 calls, instead of 30 to 82. The provider's bucket
 * fills meanwhile, so nothing of its rate is lost.
 */
const MIN_PAUSE_MS = 1000;

/**
 * Computes what to take so that the account holds no more than its provider reports as left, and
 * has no whole token of a paused limit until its pause is over. `statuses` are the account's
 * limits, freshly read.
 */
export function computeAmountsToTake(
  seen: UpstreamLimits,
  names: LimitNames,
  statuses: readonly LimitStatus[],
  pause: Pause | undefined,
): Amounts {
  const amounts: Record<string, number> = {};
  for (const { status, reported } of listMirroredLimits(seen, names, statuses)) {
    const { limitName, limit, available } = status;
    const amount = Math.max(
      computeSurplus(reported, available, limit.capacity),
      pause === undefined ? 0 : computePauseShortfall(pause, status),
      amounts[limitName] ?? 0, // two kinds may share a limit
    );
    if (amount > 0) amounts[limitName] = Math.min(amount, MAX_AMOUNT);
  }
  return amounts;
}

/** Cuts amounts to what is available. The rest would be debt. */
export function cutToAvailable(amounts: Amounts, statuses: readonly LimitStatus[]): Amounts {
  const there: Record<string, number> = {};
  for (const { limitName, available } of statuses) {
    const amount = Math.min(getAmount(amounts, limitName), available);
    if (amount > 0) there[limitName] = amount;
  }
  return there;
}

/**
 * Finds the limits that decide about a take, if the account is in debt. A limit in debt would
 * refuse takes of the others too, and then several processes would each charge what only one can
 * take.
 */
export function findLimitsWithoutDebt(statuses: readonly LimitStatus[]): {
  readonly limits?: readonly Limit[];
} {
  const debtless = statuses.filter(({ available }) => available >= 0);
  if (debtless.length === statuses.length) return {};
  return { limits: debtless.map(({ limit }) => limit) };
}

/** Finds the limits that a 429 pauses: those of which nothing is left, or else all. */
export function findLimitsToPause(
  seen: UpstreamLimits,
  names: LimitNames,
  statuses: readonly LimitStatus[],
): readonly string[] {
  const mirrored = listMirroredLimits(seen, names, statuses);
  const exhausted = mirrored.filter(({ reported }) => reported?.remaining === 0);
  return (exhausted.length > 0 ? exhausted : mirrored).map(({ status }) => status.limitName);
}

/** Computes how long a 429 pauses. */
export function computePauseMs({ retryAfterMs = 0 }: UpstreamLimits, maxPauseMs: number): number {
  return Math.min(Math.max(retryAfterMs, MIN_PAUSE_MS), maxPauseMs);
}

/**
 * Computes what the account holds above what its provider reports; 0 if that reports too little.
 */
function computeSurplus(
  reported: UpstreamLimit | undefined,
  available: number,
  capacity: number,
): number {
  // A 0 is believed only beside the limit itself: Azure also sends 0 for limits that it does not
  // disclose.
  if (
    reported?.remaining === undefined ||
    (reported.remaining === 0 && reported.limit === undefined)
  )
    return 0;
  const surplus = available - reported.remaining;
  return surplus >= capacity * IGNORED_SHARE ? surplus : 0;
}

/**
 * Computes what a limit holds above what it may have until its pause is over. In a pause that has
 * begun before, that is what calls in flight gave back, which would end it. Each call takes its own
 * part again: when four processes each took all of it, pauses of 6 s lasted for 26 s.
 */
function computePauseShortfall(
  pause: Pause,
  { limitName, limit, available }: MirroredStatus,
): number {
  if (pause.begins.includes(limitName)) return available + computeEarnings(pause.pauseMs, limit);
  const lastsMs = pause.lasts.get(limitName);
  if (lastsMs === undefined) return 0;
  return Math.min(
    available + computeEarnings(lastsMs, limit),
    getAmount(pause.givenBack, limitName),
  );
}

/** Computes what refills in a time, rounded up to whole tokens. */
function computeEarnings(ms: number, limit: RateLimit): number {
  return Math.ceil((ms * limit.refillAmount) / (limit.refillPeriodSeconds * 1000));
}

/** The status of a rate. */
type MirroredStatus = LimitStatus & { readonly limit: RateLimit };

/**
 * Lists the account's mirrored limits, and what the answer reports for each. Quotas and sessions
 * are not among them: what a pause takes of one would be gone until its window ends, and what is
 * left of a day says nothing about a minute.
 */
function listMirroredLimits(
  seen: UpstreamLimits,
  names: LimitNames,
  statuses: readonly LimitStatus[],
): readonly { readonly status: MirroredStatus; readonly reported: UpstreamLimit | undefined }[] {
  return (Object.keys(names) as UpstreamKind[]).flatMap((kind) => {
    const status = statuses.find(({ limitName }) => limitName === names[kind]);
    return status !== undefined && isMirrored(status) ? [{ status, reported: seen[kind] }] : [];
  });
}

function isMirrored(status: LimitStatus): status is MirroredStatus {
  return isRate(status.limit);
}
