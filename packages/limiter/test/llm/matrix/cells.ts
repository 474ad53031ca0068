/* A cell of the matrix: one client makes one kind of call, which ends in one way. */

/** Clients, and where the meter holds them. */
export type ClientName =
  | "fetch"
  | "ai 5"
  | "ai 6"
  | "ai 7"
  | "openai 6"
  | "openai 7"
  | "anthropic 0 by fetch"
  | "anthropic 1 by fetch"
  | "anthropic 1 by middleware"
  | "langchain by fetch"
  | "langchain by callbacks";

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

const NO_RESPONSES = {
  responses: "as with OpenAI's client, which is beneath",
  "responses stream": "as with OpenAI's client, which is beneath",
};
const NO_OPENAI = {
  responses: "Anthropic has none",
  "responses stream": "Anthropic has none",
  embedding: "Anthropic has none",
};

/** Whether a stream is left before its end. */
export function isLeft(end: End): boolean {
  return end === "left by break" || end === "never read";
}

/** Cells that a client lacks, and why. */
const LEFT_OUT: Readonly<Partial<Record<ClientName, Readonly<Record<string, string>>>>> = {
  "ai 5": {
    embedding: "its embedding models cannot be wrapped",
    "responses, no usage": "throws a TypeError of its own for an answer without a usage",
  },
  "anthropic 0 by fetch": NO_OPENAI,
  "anthropic 1 by fetch": NO_OPENAI,
  "anthropic 1 by middleware": NO_OPENAI,
  "langchain by fetch": {
    ...NO_RESPONSES,
    "embedding, aborted at once": "embeddings take no signal",
    "embedding, aborted before": "embeddings take no signal",
    "embedding, aborted during": "embeddings take no signal",
  },
  "langchain by callbacks": { ...NO_RESPONSES, embedding: "embeddings have no callbacks" },
};

/** Whether a client has a cell. */
export function isPlayed(client: ClientName, { kind, end }: Cell): boolean {
  const reasons = LEFT_OUT[client] ?? {};
  if (reasons[kind] !== undefined || reasons[`${kind}, ${end}`] !== undefined) return false;
  // Other clients read the whole answer before they return it.
  if (end === "never read" && client === "fetch") return true;
  if (OF_STREAMS.has(end)) return isStream(kind);
  return end !== "tool loop" || kind !== "embedding";
}

/** Amounts of each limit. */
export interface Charge {
  readonly rpm: number;
  readonly itpm: number;
  readonly otpm: number;
}

/** The outcome of a cell. */
export interface Seen {
  /** The amounts that full balances lack. */
  readonly charged: Charge;
  /** The recorded usage. */
  readonly usage: Charge;
  readonly leases: number;
  readonly openLeases: number;
  readonly openStreams: number;
  /** How the calls ended, by their records. */
  readonly ends: readonly string[];
  /** What the caller got: the answer, an error, or nothing in a long time. */
  readonly caller: "content" | "got an error" | "left waiting";
  /** Whether the call stayed open until it had not been read for a while. */
  readonly idled: boolean;
  /** UTF-8 bytes of text that reached the meter; undefined if they were not counted. */
  readonly tapped: number | undefined;
  /** The usage of the call by the provider's own count. */
  readonly provided: { readonly input: number; readonly output: number };
}
