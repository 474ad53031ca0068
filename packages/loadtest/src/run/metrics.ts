/** What Artillery measured in ten seconds, or in the whole run. */
export interface Metrics {
  readonly counters: Readonly<Record<string, number>>;
  readonly summaries: Readonly<Record<string, Summary | undefined>>;
  /** When the period began. */
  readonly period: number | string;
  /** Of calls and users; the lag of the generator is measured when there are none, too. */
  readonly firstCounterAt: number;
  readonly lastCounterAt: number;
}

/** The distribution of one measure. */
export interface Summary {
  readonly median: number;
  readonly p95: number;
  readonly p99: number;
  readonly max: number;
}

/** A counter; one that was never raised is 0. */
export function readCounter({ counters }: Metrics, name: string): number {
  return counters[name] ?? 0;
}

/** The kinds of calls that were counted, the most frequent first: `acquire`, `rate_limited`, … */
export function listKinds({ counters }: Metrics): readonly string[] {
  return Object.entries(counters)
    .map(([name, count]) => [/^zae\.([^.]+)\.count$/.exec(name)?.[1], count] as const)
    .filter((entry): entry is [string, number] => entry[0] !== undefined)
    .toSorted(([, left], [, right]) => right - left)
    .map(([kind]) => kind);
}

/** The names that users gave to calls of a kind. */
export function listNames({ counters }: Metrics, kinds: readonly string[]): readonly string[] {
  const names = Object.keys(counters).flatMap((counter) => {
    const [, kind, name] = /^zae\.([^.]+)_of\.(.+)\.count$/.exec(counter) ?? [];
    return name !== undefined && kinds.includes(kind!) ? [name] : [];
  });
  return [...new Set(names)].toSorted();
}
