import type { RateLimit } from "zae-limiter";
import type { BucketEvent } from "../ledger/read-ledger.ts";

/*
 * A recorded call was decided at some moment between `sent` and `answered`. The check must hold for
 * every such moment, or a slow answer would be a false alarm. With G and E as the longest latencies
 * of a grant and of an end:
 *
 *   grant    counts at `answered`, and is compared with the bound there
 *   cost     (more than was taken) counts at answered + G: then it was written before every grant
 *            that is compared with it was sent. A debt refuses later calls, not earlier ones.
 *   return   may count from `sent`, so what is under way is subtracted from each comparison; it
 *            counts at answered + G + E, after everything that may really have come before it.
 *            Earlier, a level of 0 could swallow it, and a later grant would look like too much.
 *
 * Each event moves by at most G + E, so the level is at most capacity + rate × (G + E). One more
 * millisecond is for clocks that round.
 */

/** What the check of one limit of one bucket found. */
export interface BoundCheck {
  /** The highest level, as a part of the bound. */
  readonly closest: number;
  /** The worst violation, if there is one. */
  readonly worst:
    | { readonly at: number; readonly level: number; readonly bound: number }
    | undefined;
}

/** Workers remember limits for a minute, so both the old and the new ones may decide. */
const CHANGE_MS = 60_000;

const CLOCK_MS = 1;

/** The sums of a million fractions of tokens may differ by this. */
const ROUNDING = 1e-6;

/** In this order at the same time: what makes room comes first, what fills comes last. */
const ORDER = ["under way", "grant", "cost", "return"] as const;

interface Entry {
  readonly at: number;
  readonly kind: (typeof ORDER)[number];
  readonly amount: number;
}

/** Checks one limit of one bucket over any interval, in one sorted pass. */
export function checkBound(name: string, all: readonly BucketEvent[]): BoundCheck {
  const events = all.filter(({ limits }) => limits.has(name));
  const latencies = { grant: 0, end: 0 };
  for (const { kind, sent, answered = sent } of events)
    latencies[kind] = Math.max(latencies[kind], answered - sent);
  const inForce = findLimits(name, events);
  const slackMs = latencies.grant + latencies.end + CLOCK_MS;
  let [level, underWay, lastAt, capacity, closest] = [0, 0, 0, 0, 0];
  let worst: BoundCheck["worst"];
  for (const { at, kind, amount } of buildEntries(name, events, latencies)) {
    const limit = inForce(lastAt, at);
    level = Math.max(0, level - limit.rate * (at - lastAt));
    lastAt = at;
    // The capacity at the start of the interval counts; it is full at the latest when it is empty.
    capacity = level === 0 ? limit.capacity : Math.max(capacity, limit.capacity);
    if (kind === "under way") underWay += amount;
    else if (kind === "cost") level += amount;
    else if (kind === "return") {
      underWay -= amount;
      level = Math.max(0, level - amount);
    } else {
      level += amount;
      const bound = capacity + limit.rate * slackMs;
      const used = Math.max(0, level - underWay);
      closest = Math.max(closest, used / bound);
      if (used > bound + ROUNDING && used - bound > (worst ? worst.level - worst.bound : 0))
        worst = { at, level: used, bound };
    }
  }
  return { closest, worst };
}

function buildEntries(
  name: string,
  events: readonly BucketEvent[],
  latencies: { readonly grant: number; readonly end: number },
): readonly Entry[] {
  const entries = events.flatMap((event): readonly Entry[] => {
    if (event.kind === "grant")
      return [{ at: event.answered, kind: "grant", amount: event.amounts[name] ?? 0 }];
    const { sent, answered = Infinity, deltas } = event;
    const amount = deltas[name] ?? 0;
    if (amount > 0) return [{ at: answered + latencies.grant, kind: "cost", amount }];
    if (amount === 0) return [];
    return [
      { at: sent, kind: "under way", amount: -amount },
      { at: answered + latencies.grant + latencies.end, kind: "return", amount: -amount },
    ];
  });
  return entries
    .filter(({ at }) => at < Infinity)
    .toSorted(
      (one, other) => one.at - other.at || ORDER.indexOf(one.kind) - ORDER.indexOf(other.kind),
    );
}

/** The largest capacity and rate, in tokens and tokens a millisecond, between two times. */
type FindLimit = (from: number, to: number) => { readonly capacity: number; readonly rate: number };

function findLimits(name: string, events: readonly BucketEvent[]): FindLimit {
  const spans = new Map<string, { readonly limit: RateLimit; from: number; to: number }>();
  for (const { limits, sent, answered = sent } of events) {
    const limit = limits.get(name) as RateLimit;
    const key = `${limit.capacity} ${limit.refillAmount} ${limit.refillPeriodSeconds}`;
    const span = spans.get(key) ?? { limit, from: sent, to: answered };
    span.from = Math.min(span.from, sent);
    span.to = Math.max(span.to, answered);
    spans.set(key, span);
  }
  const all = [...spans.values()].map(({ limit, from, to }) => ({
    capacity: limit.capacity,
    rate: limit.refillAmount / (limit.refillPeriodSeconds * 1000),
    from: from - CHANGE_MS,
    to: to + CHANGE_MS,
  }));
  if (all.length === 1) return () => all[0]!;
  return (from, to) => {
    const inForce = all.filter((span) => span.from <= to && span.to >= from);
    return {
      capacity: Math.max(...inForce.map(({ capacity }) => capacity)),
      rate: Math.max(...inForce.map(({ rate }) => rate)),
    };
  };
}
