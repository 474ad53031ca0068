/*
 * What a call costs, by its end: the table of the guide, written a second time. The provider
 * reports 8 tokens for the question, and 8 for the answer. 40 and 100 are reserved, and each byte
 * of output counts as a token.
 *
 *   answered, retried                    what was reported
 *   answered without a usage             input as reserved, output as counted
 *   an error, a connection refused       nothing
 *   no answer, or half of one            as reserved: the work may have been done
 *   half of a stream                     input as reported, or else as reserved; output as counted
 *   aborted before anything was taken    nothing
 */
import { isLeft, isStream, type Cell, type Charge, type End, type Seen } from "./cells.ts";
import type { Client } from "./client.ts";

const ANSWER = "A bucket holds tokens, and refills over time.";
/** The text of a stream of three words. */
const SLOW = "A bucket holds ";
/** The same without the last word, which no other word followed. */
const SLOWER = "A bucket ";
const HALF = "A bucket holds tokens, ";

const NOTHING: Charge = { rpm: 0, itpm: 0, otpm: 0 };
/** Ends after which the caller gets no error. */
const GOOD_ENDS: ReadonlySet<End> = new Set([
  "answered",
  "no usage",
  "left by break",
  "never read",
  "retried",
  "tool loop",
]);

export type Expected = Omit<Seen, "tapped" | "provided">;

export function computeExpected(client: Client, cell: Cell, seen: Seen): Expected {
  const charged = buildClaim(client, cell, seen);
  const ends = listEnds(client, cell);
  return {
    charged,
    usage: charged,
    leases: ends.length,
    ends,
    openLeases: 0,
    openStreams: 0,
    caller: GOOD_ENDS.has(cell.end) || isSilent(client, cell) ? "content" : "got an error",
    idled: client.openEnds?.includes(cell.end) === true,
  };
}

function isSilent({ silentEnds = [] }: Client, { kind, end }: Cell): boolean {
  return silentEnds.includes(end) || silentEnds.includes(`${kind}, ${end}`);
}

function buildClaim(client: Client, { kind, end }: Cell, { tapped, provided }: Seen): Charge {
  const hasOutput = kind !== "embedding";
  const reported = { rpm: 1, itpm: 8, otpm: hasOutput ? 8 : 0 };
  const reserved = { rpm: 1, itpm: 40, otpm: hasOutput ? 100 : 0 };
  /** The input that Anthropic reported at the beginning of a stream. */
  const input = client.reportsInputFirst === true ? 8 : 40;
  /** The output of a client that reads more than its caller. */
  const ahead = client.readsAhead === true ? tapped : undefined;
  const partly = (output: number): Charge =>
    isStream(kind) ? { rpm: 1, itpm: input, otpm: output } : reserved;
  const table: Readonly<Record<End, Charge>> = {
    answered: reported,
    "no usage": { rpm: 1, itpm: 40, otpm: hasOutput ? ANSWER.length : 0 },
    "400": NOTHING,
    "401": NOTHING,
    "429": NOTHING,
    "500": NOTHING,
    "refused connection": NOTHING,
    "lost connection": reserved,
    "cut off": partly(HALF.length),
    "ended early": partly(HALF.length),
    "error event": partly(HALF.length),
    "aborted at once": NOTHING,
    "aborted before": reserved,
    "aborted during": partly(SLOW.length),
    "left by break": partly(ahead ?? SLOW.length),
    // If nothing was read, not even Anthropic's input is known.
    "never read": isStream(kind) ? { rpm: 1, itpm: 40, otpm: ahead ?? 0 } : reserved,
    retried: reported,
    "tool loop": { rpm: 3, itpm: provided.input, otpm: provided.output },
  };
  if (isLeft(end) && client.readsOn === true) return reported;
  if (end === "never read" && client.seesRunsOnly === true) return reserved;
  if (end === "aborted during" && client.seesRunsOnly === true) return partly(SLOWER.length);
  return table[end];
}

/** Lists how each lease ended. Each is recorded once. */
function listEnds(client: Client, { kind, end }: Cell): readonly string[] {
  const other = client.otherEnds?.[`${kind}, ${end}`];
  if (other !== undefined) return other;
  if (isLeft(end)) return client.readsOn === true ? ["complete"] : ["abandoned"];
  if (end === "retried")
    return client.seesRunsOnly === true ? ["complete"] : ["failed", "complete"];
  const table: Readonly<Partial<Record<End, readonly string[]>>> = {
    answered: ["complete"],
    "no usage": ["complete"],
    "lost connection": ["cut"],
    "cut off": ["cut"],
    "ended early": ["cut"],
    "error event": ["cut"],
    "aborted at once": [],
    "aborted before": ["abandoned"],
    "aborted during": ["abandoned"],
    "tool loop": ["complete", "complete", "complete"],
  };
  return table[end] ?? ["failed"];
}
