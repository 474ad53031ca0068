/*
 * What a call costs, by how it ended: the table of the guide, written down a second time. The
 * provider reports 8 tokens for the question, and 8 for the answer; 40 and 100 were reserved, and
 * what goes by is counted as one token for each byte.
 *
 *   answered, retried                    what was reported
 *   answered without a usage             input as reserved, output as counted
 *   an error, a connection refused       nothing
 *   no answer, or half of one            as reserved: the work may have been done
 *   half of a stream                     input as reported, or else as reserved; output as counted
 *   aborted before anything was taken    nothing
 */
import { isStream, type Cell, type Charge, type Seen } from "./cells.ts";
import type { Client } from "./client.ts";

const ANSWER = "A bucket holds tokens, and refills over time.";
/** What streams of three words and streams that break have brought. */
const SLOW = "A bucket holds ";
const HALF = "A bucket holds tokens, ";

const NOTHING: Charge = { rpm: 0, itpm: 0, otpm: 0 };
/** Ends of which the caller is told nothing bad. */
const GOOD_ENDS: ReadonlySet<Cell["end"]> = new Set([
  "answered",
  "no usage",
  "left by break",
  "never read",
  "retried",
  "tool loop",
]);

export type Expected = Omit<Seen, "tapped" | "provided">;

export function expectedOf(client: Client, cell: Cell, seen: Seen): Expected {
  const charged = chargeOf(client, cell, seen);
  return {
    charged,
    usage: charged,
    leases: leasesOf(client, cell),
    openLeases: 0,
    openStreams: 0,
    caller: GOOD_ENDS.has(cell.end) || isSilent(client, cell) ? "content" : "told of an error",
    idled: client.openEnds?.includes(cell.end) === true,
  };
}

function isSilent({ silentEnds = [] }: Client, { kind, end }: Cell): boolean {
  return silentEnds.includes(end) || silentEnds.includes(`${kind}, ${end}`);
}

function chargeOf(client: Client, { kind, end }: Cell, { tapped, provided }: Seen): Charge {
  const answered = kind === "embedding" ? 0 : 8;
  const reserved = { rpm: 1, itpm: 40, otpm: kind === "embedding" ? 0 : 100 };
  const counted = kind === "embedding" ? 0 : ANSWER.length;
  /** What Anthropic has said at the beginning of a stream. */
  const input = client.saysInputFirst === true ? 8 : 40;
  const partly = (output: number): Charge =>
    isStream(kind) ? { rpm: 1, itpm: input, otpm: output } : reserved;
  switch (end) {
    case "answered":
    case "retried":
      return { rpm: 1, itpm: 8, otpm: answered };
    case "no usage":
      return { rpm: 1, itpm: 40, otpm: counted };
    case "400":
    case "401":
    case "429":
    case "500":
    case "refused connection":
    case "aborted at once":
      return NOTHING;
    case "lost connection":
    case "aborted before":
      return reserved;
    case "cut off":
    case "ended early":
    case "error event":
      return partly(HALF.length);
    case "aborted during":
      return partly(SLOW.length);
    case "left by break":
      if (client.readsOn === true) return { rpm: 1, itpm: 8, otpm: answered };
      return partly(client.readsAhead === true ? tapped! : SLOW.length);
    case "never read":
      if (client.readsOn === true) return { rpm: 1, itpm: 8, otpm: answered };
      if (client.seesRunsOnly === true) return reserved;
      // Where nothing has gone by, not even Anthropic's input is known.
      return client.readsAhead === true ? partly(tapped!) : { rpm: 1, itpm: 40, otpm: 0 };
    case "tool loop":
      return { rpm: 3, itpm: provided.input, otpm: provided.output };
  }
}

function leasesOf({ seesRunsOnly }: Client, { end }: Cell): number {
  if (end === "aborted at once") return 0;
  if (end === "retried") return seesRunsOnly === true ? 1 : 2;
  return end === "tool loop" ? 3 : 1;
}
