/* A cell of the matrix: one client makes one kind of call, which ends in one way. */

/** Kinds of calls. `plain` and `stream` are chat completions, or messages of Anthropic. */
export const KINDS = ["plain", "stream", "responses", "responses stream", "embedding"] as const;
export type Kind = (typeof KINDS)[number];

/** How calls end. */
export const ENDS = [
  "answered",
  "no usage",
  "400",
  "401",
  "429",
  "500",
  "refused connection",
  "lost connection",
  "cut off",
  "ended early",
  "error event",
  "aborted at once",
  "aborted before",
  "aborted during",
  "left by break",
  "never read",
  "retried",
  "tool loop",
] as const;
export type End = (typeof ENDS)[number];

export const STORES = ["memory", "sqlite"] as const;
export type Store = (typeof STORES)[number];

export interface Cell {
  readonly kind: Kind;
  readonly end: End;
  readonly store: Store;
}

/** Ends that only streams have. */
const OF_STREAMS: ReadonlySet<End> = new Set([
  "ended early",
  "error event",
  "left by break",
  "never read",
]);

export function isStream(kind: Kind): boolean {
  return kind.endsWith("stream");
}

/** Whether calls of a kind can end in a way at all, with whichever client. */
export function isPossible(kind: Kind, end: End): boolean {
  if (OF_STREAMS.has(end)) return isStream(kind);
  return end !== "tool loop" || kind !== "embedding";
}

/** What was reserved for each limit, or charged. */
export interface Charge {
  readonly rpm: number;
  readonly itpm: number;
  readonly otpm: number;
}

/** What a cell has left behind. */
export interface Seen {
  /** What is missing from full balances. */
  readonly charged: Charge;
  /** What the windows of usage hold. */
  readonly usage: Charge;
  readonly leases: number;
  readonly openLeases: number;
  readonly openStreams: number;
  /** Whether the caller was told of an error. */
  readonly threw: boolean;
  /** Whether the call stayed open until nobody had read it for a while. */
  readonly idled: boolean;
  /** UTF-8 bytes of text that came to the meter; undefined where nobody counted. */
  readonly tapped: number | undefined;
  /** What the provider has used for the call, by its own count. */
  readonly provided: { readonly input: number; readonly output: number };
}
