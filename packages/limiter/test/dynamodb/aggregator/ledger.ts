/** Whole tokens by limit. */
export type Tokens = Readonly<Record<string, number>>;

/** What one bucket consumed, in thousandths of a token; without what is 0. */
export interface Sum {
  readonly consumed: Readonly<Record<string, number>>;
  readonly requests: number;
  /** The part that came by cascade. */
  readonly cascaded: Readonly<Record<string, number>>;
  readonly cascadedRequests: number;
}

/** A change of what a bucket has consumed. */
interface Change {
  readonly entityId: string;
  readonly resource: string;
  /** When it was written, as the stream will tell. */
  readonly atMs: number;
  readonly tokens: Tokens;
  readonly requests: number;
  readonly isCascaded: boolean;
}

type Windows = Map<string, MutableSum>;

interface MutableSum {
  consumed: Record<string, number>;
  requests: number;
  cascaded: Record<string, number>;
  cascadedRequests: number;
}

/** How a window's start is cut from the time's text. */
const WINDOWS = { hourly: 13, daily: 10, monthly: 7 } as const;

/**
 * Adds up what clients consumed by their answers, into windows. It knows nothing of the table,
 * nor of the code that it judges.
 */
export class Ledger {
  readonly #sums: Windows = new Map();

  add({ entityId, resource, atMs, tokens, requests, isCascaded }: Change): void {
    const iso = new Date(atMs).toISOString();
    for (const [window, length] of Object.entries(WINDOWS)) {
      const key = usageName({ entityId, resource, window, start: iso.slice(0, length) });
      const sum = this.#sums.get(key) ?? emptySum();
      this.#sums.set(key, sum);
      addTokens(sum.consumed, tokens);
      sum.requests += requests;
      if (!isCascaded) continue;
      addTokens(sum.cascaded, tokens);
      sum.cascadedRequests += requests;
    }
  }

  /** Everything that is not 0, by window, start, entity and resource. */
  sums(): Readonly<Record<string, Sum>> {
    return withoutNothing(this.#sums);
  }
}

/** How the sums of a window are found: its start is cut to what distinguishes it. */
export function usageName(name: {
  readonly entityId: string;
  readonly resource: string;
  readonly window: string;
  readonly start: string;
}): string {
  return `${name.window} ${name.start} ${name.entityId} ${name.resource}`;
}

/** Where the start of a window is cut off. */
export function startLength(window: string): number {
  return WINDOWS[window as keyof typeof WINDOWS];
}

/** Sums without what is 0, in the order of their names: an entry of 0 may be stored or not. */
export function withoutNothing(sums: ReadonlyMap<string, Sum>): Readonly<Record<string, Sum>> {
  const kept = [...sums]
    .map(([name, sum]) => {
      const consumed = nonZero(sum.consumed);
      const cascaded = nonZero(sum.cascaded);
      return [name, { ...sum, consumed, cascaded }] as const;
    })
    .filter(
      ([, { consumed, requests, cascaded, cascadedRequests }]) =>
        requests !== 0 ||
        cascadedRequests !== 0 ||
        Object.keys(consumed).length + Object.keys(cascaded).length > 0,
    )
    .toSorted(([left], [right]) => (left < right ? -1 : 1));
  return Object.fromEntries(kept);
}

function emptySum(): MutableSum {
  return { consumed: {}, requests: 0, cascaded: {}, cascadedRequests: 0 };
}

function addTokens(sum: Record<string, number>, tokens: Tokens): void {
  for (const [name, amount] of Object.entries(tokens)) sum[name] = (sum[name] ?? 0) + amount * 1000;
}

function nonZero(amounts: Readonly<Record<string, number>>): Readonly<Record<string, number>> {
  return Object.fromEntries(
    Object.entries(amounts)
      .filter(([, amount]) => amount !== 0)
      .toSorted(([left], [right]) => (left < right ? -1 : 1)),
  );
}
