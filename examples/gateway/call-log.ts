/**
 * One granted call as its process saw it. What a call did to a bucket happened between the time
 * before and the time after it: the checks rest on these four times alone, not on how fast the
 * machine is.
 */
export interface Call {
  readonly key: string;
  readonly model: string;
  readonly estimate: number;
  readonly askedMs: number;
  readonly grantedMs: number;
  readonly endAskedMs: number;
  readonly endedMs: number;
  /** The tokens that the call really used; undefined when it failed and gave everything back. */
  readonly actual: number | undefined;
}

/** What one process counted so far for one key and model. */
export interface Count {
  granted: number;
  refused: number;
  failed: number;
}

/** Counts by `countKey`. */
export type Counts = Record<string, Count>;

/** Everything that one process did. */
export interface Books {
  readonly calls: readonly Call[];
  readonly counts: Counts;
  /** Calls that the store could not answer in time: neither granted nor refused. */
  readonly unavailable: number;
  /** Ends of calls that could not be written: what was taken stays taken. */
  readonly unwritten: number;
}

/** The key of one count. */
export function countKey(entityId: string, model: string): string {
  return `${entityId} ${model}`;
}

/** Counts of several processes added up. */
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

/** A change of one limit of one bucket, somewhen between two times. */
export interface Change {
  readonly amount: number;
  readonly startMs: number;
  readonly endMs: number;
  /**
   * `take`: only if the tokens were there. `overrun`: a settlement that took more. `back`: a
   * give-back or a settlement that took less.
   */
  readonly kind: "take" | "overrun" | "back";
}

/** What calls did to one limit. A request costs 1 of `rpm`, and the tokens are settled in `tpm`. */
export function changesOf(calls: readonly Call[], limitName: string): readonly Change[] {
  return calls.flatMap((call): readonly Change[] => {
    const { estimate, actual, askedMs, grantedMs, endAskedMs, endedMs } = call;
    const taken = limitName === "rpm" ? 1 : estimate;
    const used = actual === undefined ? 0 : limitName === "rpm" ? 1 : actual;
    const take: Change = { amount: taken, startMs: askedMs, endMs: grantedMs, kind: "take" };
    if (used === taken) return [take];
    const kind = used > taken ? "overrun" : "back";
    return [take, { amount: Math.abs(used - taken), startMs: endAskedMs, endMs: endedMs, kind }];
  });
}

/** What the second process tells the first. */
export type Message = { readonly counts: Counts } | { readonly books: Books };
