import type { Amounts, Repository } from "zae-limiter";
import { countKey, type Counts } from "./call-log.ts";
import { limitKey } from "./checks.ts";
import { toAvailable } from "./read-back.ts";
import { BUCKETS } from "./scenario.ts";
import { DEFAULT_COLUMNS, type Paint } from "./text.ts";
import { nowMs, pause } from "./time-and-random.ts";
import { introText, viewText } from "./view.ts";

/** What the live view works with. */
export interface LiveOptions {
  readonly repository: Repository;
  readonly startMs: number;
  readonly endMs: number;
  /** Settles when both processes have finished their last calls. */
  readonly work: Promise<unknown>;
  readonly counts: () => Counts;
  /** Undefined when nothing is to be shown; the balances are watched all the same. */
  readonly output: NodeJS.WriteStream | undefined;
  readonly paint: Paint;
}

const REDRAW_MS = 250;
/** Without a terminal nothing can be redrawn; the view is printed this many times in a run. */
const PRINTS = 4;

/** Shows the live view until the work is done, and returns the lowest balances that it saw. */
export async function showLiveView(options: LiveOptions): Promise<ReadonlyMap<string, number>> {
  const { repository, startMs, endMs, counts, output, paint } = options;
  output?.write(introText(output.columns || DEFAULT_COLUMNS, paint));
  const lowest = new Map<string, number>();
  const everyMs = output?.isTTY === true ? REDRAW_MS : (endMs - startMs) / PRINTS;
  let [over, drawnLines, nextMs] = [false, 0, startMs];
  const done = options.work.catch(() => undefined).then(() => (over = true));
  for (let last = false; !last;) {
    last = over;
    const available = await readBalances(repository);
    noteLowest(lowest, available);
    if (output !== undefined && (last || nowMs() >= nextMs)) {
      const elapsedMs = Math.min(nowMs(), endMs) - startMs;
      const text = viewText(
        { elapsedMs, lengthMs: endMs - startMs, counts: counts(), available },
        paint,
      );
      output.write(output.isTTY ? redraw(text, drawnLines) : `${text}\n`);
      drawnLines = text.split("\n").length - 1;
      nextMs = nowMs() + everyMs;
    }
    if (!last) await Promise.race([pause(REDRAW_MS), done]);
  }
  return lowest;
}

/** Reads what is available in each bucket. */
async function readBalances(repository: Repository): Promise<ReadonlyMap<string, Amounts>> {
  const balances = new Map<string, Amounts>();
  for (const { entityId, model } of BUCKETS) {
    const states = await repository.getBuckets(entityId, { resource: model });
    balances.set(countKey(entityId, model), toAvailable(states));
  }
  return balances;
}

/** Lowers the lowest balances seen so far to those that are lower now. */
function noteLowest(lowest: Map<string, number>, balances: ReadonlyMap<string, Amounts>): void {
  for (const { entityId, model } of BUCKETS) {
    for (const [name, tokens] of Object.entries(balances.get(countKey(entityId, model)) ?? {})) {
      const key = limitKey(entityId, model, name);
      lowest.set(key, Math.min(tokens, lowest.get(key) ?? tokens));
    }
  }
}

/**
 * Moves the cursor back to the first line and clears the rest of each line that is overwritten.
 * Wrapping is switched off meanwhile: a wrapped line would take up two.
 */
function redraw(text: string, drawnLines: number): string {
  const up = drawnLines === 0 ? "" : `\u001B[${drawnLines}A`;
  return `\u001B[?7l${up}${text.replaceAll("\n", "\u001B[K\n")}\u001B[?7h`;
}
