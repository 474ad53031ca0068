import type { LimitStatus, Repository } from "zae-limiter";
import { RESOURCES } from "./fixtures.ts";
import type { Client } from "./client.ts";
import {
  BrokenPromise,
  fitsAt,
  type Charge,
  type Decision,
  type Oracle,
  type Verdict,
} from "../oracle/oracle.ts";
import {
  holds,
  milliAt,
  listTokens,
  type Balance,
  type OracleBucket,
  type Tokens,
} from "../oracle/oracle-bucket.ts";
import { isOpen, windowEndAfter } from "../oracle/window-balance.ts";
import { windowAround, type WindowLength, type WindowSum } from "../oracle/oracle-usage.ts";

type BucketStates = Awaited<ReturnType<Repository["getBuckets"]>>;

/**
 * Compares every stored balance of these entities with what it must be, to the millitoken; returns
 * how many limits are in debt.
 */
export async function compareBuckets(
  client: Client,
  oracle: Oracle,
  entityIds: readonly string[],
): Promise<number> {
  const nowMs = client.now();
  let debts = 0;
  const stored = await Promise.all(
    entityIds.map(async (entityId) => client.repository.getBuckets(entityId)),
  );
  for (const [index, entityId] of entityIds.entries()) {
    const states = stored[index]!;
    let expected = 0;
    for (const resource of RESOURCES) {
      const bucket = oracle.bucket(entityId, resource);
      if (bucket === undefined) continue;
      const ofResource = states.filter((state) => state.resource === resource);
      const wrong = findDifference(ofResource, bucket, { nowMs, loose: client.loose });
      if (wrong !== undefined) throw new BrokenPromise(`${entityId} on ${resource}: ${wrong}`);
      expected += ofResource.length;
      for (const { tokensMilli } of ofResource) if (tokensMilli < 0) debts += 1;
    }
    if (expected !== states.length)
      throw new BrokenPromise(`${entityId} has buckets that no call has taken from`);
  }
  return debts;
}

/** How stored limits of one bucket differ from what they must be. */
export function findDifference(
  states: BucketStates,
  { stampMs, balances, countedMilli }: OracleBucket,
  { nowMs, loose }: { readonly nowMs: number; readonly loose: boolean },
): string | undefined {
  let visible = 0;
  for (const balance of balances) {
    if (balance.hidden) continue;
    visible += 1;
    const { terms, consumedMilli } = balance;
    const state = states.find(({ limitName }) => limitName === terms.name);
    if (state === undefined) return `${terms.name} is not stored`;
    const isWindow = terms.window !== undefined;
    const wrong = isWindow
      ? wrongWindow(state, balance, nowMs)
      : loose
        ? wrongNow(state, balance, stampMs, nowMs)
        : wrongStored(state, balance, stampMs);
    if (wrong !== undefined) return `${terms.name} ${wrong}`;
    // Only items of a table also add up what was consumed while no limit held.
    const counted = loose ? (countedMilli?.get(terms.name) ?? 0n) : 0n;
    if (state.totalConsumedMilli !== Number(consumedMilli + counted))
      return `${terms.name} counts ${state.totalConsumedMilli} millitokens consumed, and must count ${consumedMilli + counted}`;
    if (state.capacityMilli !== Number(terms.capacityMilli))
      return `${terms.name} has a capacity of ${state.capacityMilli}`;
    if (
      !isWindow &&
      (state.refillAmountMilli !== Number(terms.amount) ||
        state.refillPeriodMs !== Number(terms.period))
    )
      return `${terms.name} earns ${state.refillAmountMilli} every ${state.refillPeriodMs}`;
    if (state.available !== wholeTokens(balance, stampMs, nowMs))
      return `${terms.name} shows ${state.available} available`;
  }
  return visible === states.length
    ? undefined
    : `${states.length} limits are stored, and must be ${visible}`;
}

/** Of a window that is over only what it shows matters, not what is stored. */
function wrongWindow(
  state: BucketStates[number],
  balance: Balance,
  nowMs: number,
): string | undefined {
  if (!isOpen(balance, nowMs) || state.tokensMilli === Number(balance.units)) return undefined;
  return `holds ${state.tokensMilli} millitokens, and must hold ${balance.units}`;
}

function wrongStored(
  state: BucketStates[number],
  balance: Balance,
  stampMs: number,
): string | undefined {
  const tokensMilli = Number(milliAt(balance, stampMs, stampMs));
  if (state.tokensMilli !== tokensMilli)
    return `holds ${state.tokensMilli} millitokens, and must hold ${tokensMilli}`;
  return state.lastRefillMs === stampMs
    ? undefined
    : `was refilled at ${state.lastRefillMs}, and must be at ${stampMs}`;
}

/**
 * By an older stamp the same balance must be reached now. Stored remainders are not shown, so that
 * is known to one millitoken.
 */
function wrongNow(
  state: BucketStates[number],
  balance: Balance,
  stampMs: number,
  nowMs: number,
): string | undefined {
  const { terms } = balance;
  const shown = { terms, units: BigInt(state.tokensMilli) * terms.period };
  const tokensMilli = milliAt(shown, state.lastRefillMs, nowMs);
  const expected = milliAt(balance, stampMs, nowMs);
  const isRight = expected === tokensMilli || expected === tokensMilli + 1n;
  return isRight ? undefined : `holds ${tokensMilli} millitokens now, and must hold ${expected}`;
}

/**
 * Compares what `available` answers, which sees limits that no decision has written to the bucket
 * yet.
 */
export async function compareAvailable(
  client: Client,
  oracle: Oracle,
  entityId: string,
  resource: string,
): Promise<void> {
  const nowMs = client.now();
  const verdict = oracle.decide(
    { entityId, wants: [{ resource, tokens: {} }], override: undefined },
    nowMs,
  );
  if (verdict.kind === "invalid") return;
  const answer = await client.limiter.available(entityId, resource);
  const own = verdict.claims[0]!;
  if (Object.keys(answer).length !== own.wanted.length)
    throw new BrokenPromise(`available shows ${Object.keys(answer).join(", ")}`);
  for (const { name } of own.wanted) {
    const least = leastAvailable(verdict.claims, name, nowMs);
    if (answer[name] !== least)
      throw new BrokenPromise(
        `available shows ${answer[name]} ${name} of ${entityId} on ${resource}, and must show ${least}`,
      );
  }
}

/**
 * Compares what `check` and `timeUntilAvailable` answer of limits with windows: the same statuses
 * as a refusal has.
 */
export async function compareChecked(
  client: Client,
  oracle: Oracle,
  { entityId, resource }: { readonly entityId: string; readonly resource: string },
): Promise<void> {
  const nowMs = client.now();
  const decide = (tokens: Tokens): Verdict =>
    oracle.decide({ entityId, wants: [{ resource, tokens }], override: undefined }, nowMs);
  const empty = decide({});
  if (empty.kind === "invalid") return;
  const windows = empty.claims[0]!.wanted.filter(({ window }) => window !== undefined);
  if (windows.length === 0) return;
  const consume = Object.fromEntries(
    windows.map(({ name, capacityMilli }) => [name, Number(capacityMilli / 1000n)]),
  );
  const verdict = decide(consume);
  if (verdict.kind === "invalid") return;
  const { statuses } = await client.limiter.check({ entityId, resource, consume });
  const seconds = await client.limiter.timeUntilAvailable(entityId, resource, consume);
  const { loose } = client;
  if (verdict.kind === "refused") compareRefusal(statuses, seconds, verdict, { nowMs, loose });
  else {
    compareStatuses(statuses, verdict, { nowMs, loose });
    if (seconds !== 0) throw new BrokenPromise(`a call that fits has to wait for ${seconds} s`);
  }
}

/** Whole tokens of one limit, the least of all buckets of a call that show it. */
export function leastAvailable(claims: readonly Charge[], name: string, nowMs: number): number {
  let least = Infinity;
  for (const { view } of claims) {
    const balance = view.balances.find(({ terms, hidden }) => terms.name === name && !hidden);
    if (balance !== undefined) least = Math.min(least, wholeTokens(balance, view.stampMs, nowMs));
  }
  return least;
}

/**
 * Compares a refusal: every limit of every bucket, and for each the exact time at which it would
 * fit if no other call took.
 */
export function compareRefusal(
  statuses: readonly LimitStatus[],
  retryAfterSeconds: number,
  verdict: Decision,
  { nowMs, loose }: { readonly nowMs: number; readonly loose: boolean },
): void {
  compareStatuses(statuses, verdict, { nowMs, loose });
  const waitMs = toMs(retryAfterSeconds);
  if (
    Number.isFinite(waitMs) &&
    (!fitsAt(verdict.claims, nowMs + waitMs) || fitsAt(verdict.claims, nowMs + waitMs - 1))
  )
    throw new BrokenPromise(
      `the refusal says that the call fits in ${waitMs} ms, which is not the first time at which it does`,
    );
}

function compareStatuses(
  statuses: readonly LimitStatus[],
  verdict: Decision,
  { nowMs, loose }: { readonly nowMs: number; readonly loose: boolean },
): void {
  const mayOpen = loose && verdict.kind === "refused" && verdict.claims.length > 1;
  let count = 0;
  for (const { entityId, resource, sources, view, tokens } of verdict.claims) {
    for (const balance of view.balances) {
      if (balance.hidden) continue;
      count += 1;
      const { name } = balance.terms;
      const status = statuses.find(
        (other) =>
          other.entityId === entityId && other.resource === resource && other.limitName === name,
      );
      if (status === undefined)
        throw new BrokenPromise(`the refusal lacks ${name} of ${entityId} on ${resource}`);
      const wrong =
        sources.get(name) === status.source
          ? wrongStatus(status, balance, view.stampMs, {
              requested: listTokens(tokens, name),
              nowMs,
              mayOpen,
            })
          : "source";
      if (wrong !== undefined)
        throw new BrokenPromise(
          `the refusal has a wrong ${wrong} for ${name} of ${entityId} on ${resource}`,
        );
    }
  }
  if (count !== statuses.length)
    throw new BrokenPromise(`the refusal lists ${statuses.length} limits instead of ${count}`);
}

function wrongStatus(
  status: LimitStatus,
  balance: Balance,
  stampMs: number,
  {
    requested,
    nowMs,
    mayOpen,
  }: { readonly requested: number; readonly nowMs: number; readonly mayOpen: boolean },
): string | undefined {
  const available = wholeTokens(balance, stampMs, nowMs);
  const exceeded = !holds(balance, stampMs, requested, nowMs);
  if (status.available !== available) return "balance";
  const { window } = balance.terms;
  const endMs = isOpen(balance, nowMs) ? balance.endMs : undefined;
  if (status.kind !== (window?.kind ?? "rate")) return "kind";
  const shownMs = status.resetsAt?.getTime();
  // See `withOpened`.
  const isOpened =
    mayOpen &&
    requested > 0 &&
    endMs === undefined &&
    window !== undefined &&
    shownMs === windowEndAfter(window, nowMs);
  if (shownMs !== endMs && !isOpened) return "end of its window";
  if (status.resetsInSeconds !== (shownMs && (shownMs - nowMs) / 1000)) return "time until its end";
  if (status.requested !== requested) return "request";
  if (status.exceeded !== exceeded) return "verdict";
  if (status.deficit !== (exceeded ? requested - available : 0)) return "deficit";
  const waitMs = toMs(status.retryAfterSeconds);
  if (!exceeded) return waitMs === 0 ? undefined : "wait";
  const isNever =
    window === undefined
      ? BigInt(requested) * 1000n > balance.terms.capacityMilli
      : !holds(balance, stampMs, requested, nowMs + A_CENTURY_MS);
  if (isNever || !Number.isFinite(waitMs))
    return isNever && waitMs === Infinity ? undefined : "wait";
  const isFirst =
    holds(balance, stampMs, requested, nowMs + waitMs) &&
    !holds(balance, stampMs, requested, nowMs + waitMs - 1);
  return isFirst ? undefined : "wait";
}

/** As good as never ending: no debt is carried further. */
const A_CENTURY_MS = 4e12;

/** Retention of usage, less what a clock that stepped back could make of it. */
const KEPT_MS = 90 * 86_400_000;

/** Which windows of which bucket to compare. */
export interface UsageOf {
  readonly entityId: string;
  readonly resource: string;
  readonly window: WindowLength;
  /** The latest time that the clock of any client has shown. */
  readonly latestMs: number;
  /** Only the window that holds this time. */
  readonly aroundMs?: number;
}

/**
 * Compares the windows of one bucket with everything that was ever consumed; returns how many
 * windows there are.
 */
export async function compareUsage(
  { repository }: Client,
  oracle: Oracle,
  of: UsageOf,
): Promise<number> {
  const { entityId, resource, window, latestMs, aroundMs } = of;
  const [fromMs, untilMs] = aroundMs === undefined ? [0, Infinity] : windowAround(window, aroundMs);
  const range = aroundMs === undefined ? {} : { start: new Date(fromMs), end: new Date(untilMs) };
  const { items } = await repository.getUsageSnapshots({
    entityId,
    resource,
    window,
    limit: 1000,
    ...range,
  });
  const expected = oracle.usage.windows(`${entityId} ${resource}`, window);
  const cascades = oracle.cascaded.windows(`${entityId} ${resource}`, window);
  const oldestMs = latestMs - KEPT_MS;
  for (const { windowStart, windowEnd, counters, requests, ...item } of items) {
    if (windowEnd.getTime() <= oldestMs) continue;
    const sum = expected.get(windowStart.getTime());
    const where = (): string =>
      `the ${window} usage of ${entityId} on ${resource} from ${windowStart.toISOString()}`;
    if (sum !== undefined && windowEnd.getTime() !== sum.endMs)
      throw new BrokenPromise(`${where()} is of no such window`);
    compareSums(where, { counters, requests }, sum ?? NOTHING);
    compareSums(
      () => `${where()}, by cascade,`,
      { counters: item.cascaded, requests: item.cascadedRequests },
      cascades.get(windowStart.getTime()) ?? NOTHING,
    );
  }
  for (const { startMs, endMs, requests, counters } of expected.values()) {
    if (
      startMs < fromMs ||
      startMs >= untilMs ||
      endMs <= oldestMs ||
      items.some(({ windowStart }) => windowStart.getTime() === startMs)
    )
      continue;
    const isZero = requests === 0 && [...counters.values()].every((tokens) => tokens === 0);
    if (isZero && (cascades.get(startMs)?.requests ?? 0) === 0) continue;
    throw new BrokenPromise(
      `the ${window} usage of ${entityId} on ${resource} from ${new Date(startMs).toISOString()} is missing`,
    );
  }
  return items.length;
}

/** The counts where no call took; tokens that were given back may be listed. */
const NOTHING: Pick<WindowSum, "counters" | "requests"> = { counters: new Map(), requests: 0 };

function compareSums(
  where: () => string,
  { counters, requests }: { readonly counters: Tokens; readonly requests: number },
  sum: Pick<WindowSum, "counters" | "requests">,
): void {
  if (requests !== sum.requests)
    throw new BrokenPromise(
      `${where()} counts ${requests} requests, and must count ${sum.requests}`,
    );
  for (const name in counters)
    if (!sum.counters.has(name) && counters[name] !== 0)
      throw new BrokenPromise(`${where()} counts ${name}, which no call took`);
  for (const [name, tokens] of sum.counters) {
    const counted = listTokens(counters, name);
    if (counted !== tokens)
      throw new BrokenPromise(`${where()} counts ${counted} ${name}, and must count ${tokens}`);
  }
}

function wholeTokens(balance: Balance, stampMs: number, nowMs: number): number {
  return Math.floor(Number(milliAt(balance, stampMs, nowMs)) / 1000);
}

/** Seconds carry whole milliseconds. */
function toMs(seconds: number): number {
  return Math.round(seconds * 1000);
}
