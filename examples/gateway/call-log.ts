/**
 * One granted call as its process saw it. The take happened between the first two times, and the
 * settlement or rollback between the last two. The checks rely on these four times alone, not on
 * how fast the machine is.
 */
export interface Call {
  readonly key: string;
  readonly model: string;
  readonly estimate: number;
  readonly acquireStartMs: number;
  readonly acquireEndMs: number;
  readonly settleStartMs: number;
  readonly settleEndMs: number;
  /** The tokens that the call really used; undefined when it failed and was rolled back. */
  readonly actual: number | undefined;
}

/** What one process has counted so far for one key and model. */
export interface Count {
  granted: number;
  refused: number;
  failed: number;
}

/** Counts by `countKey`. */
export type Counts = Record<string, Count>;

/** Everything that one process did: its granted calls, and how often something else happened. */
export interface CallLog {
  readonly calls: readonly Call[];
  readonly counts: Counts;
  /** Calls that were neither granted nor refused, because the store was busy for too long. */
  readonly unavailable: number;
  /** Settlements and rollbacks that could not be written. The tokens stay charged. */
  readonly unwritten: number;
}

/** The key of an entity and a model in `Counts`. */
export function countKey(entityId: string, model: string): string {
  return `${entityId} ${model}`;
}

/** Adds up the counts of several processes. */
export function addCounts(all: readonly Counts[]): Counts {
  const sum: Counts = {};
  for (const counts of all) {
    for (const [key, { granted, refused, failed }] of Object.entries(counts)) {
      const count = (sum[key] ??= { granted: 0, refused: 0, failed: 0 });
      count.granted += granted;
      count.refused += refused;
      count.failed += failed;
    }
  }
  return sum;
}

/** A change of one limit of one bucket, at some point between two times. */
export interface Change {
  readonly amount: number;
  readonly startMs: number;
  readonly endMs: number;
  /**
   * `take`: granted, so the tokens were there. `overrun`: a settlement above the estimate, into
   * debt if need be. `return`: a rollback, or a settlement below the estimate.
   */
  readonly kind: "take" | "overrun" | "return";
}

/** What calls changed in one limit. Each takes 1 of `rpm`; `tpm` is settled to the real tokens. */
export function listChanges(calls: readonly Call[], limitName: string): readonly Change[] {
  return calls.flatMap((call): readonly Change[] => {
    const { estimate, actual, acquireStartMs, acquireEndMs, settleStartMs, settleEndMs } = call;
    const taken = limitName === "rpm" ? 1 : estimate;
    const used = actual === undefined ? 0 : limitName === "rpm" ? 1 : actual;
    const take: Change = {
      amount: taken,
      startMs: acquireStartMs,
      endMs: acquireEndMs,
      kind: "take",
    };
    if (used === taken) return [take];
    const kind = used > taken ? "overrun" : "return";
    return [
      take,
      { amount: Math.abs(used - taken), startMs: settleStartMs, endMs: settleEndMs, kind },
    ];
  });
}

/** What the second process sends to the first: its counts while it works, its log at the end. */
export type Message = { readonly counts: Counts } | { readonly log: CallLog };
