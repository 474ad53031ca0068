import type { RunnerProblem, RunnerProgress } from "zae-limiter/aggregator";
import type { Environment } from "../../environment.ts";
import type { Screen } from "../../output/screen.ts";
import { numberText, printable } from "../../output/text.ts";

/** How often a line is written where none can be rewritten. */
const LINE_EVERY_MS = 10_000;

/** How often a line is rewritten: faster than a person reads. */
const REWRITE_EVERY_MS = 200;

/** Shows problems on standard error and, unless JSON is requested, the progress of a runner. */
export class RunnerDisplay {
  readonly #environment: Environment;
  readonly #screen: Screen;
  #nextAtMs = -Infinity;

  constructor(environment: Environment, screen: Screen) {
    this.#environment = environment;
    this.#screen = screen;
  }

  show(progress: RunnerProgress): void {
    const { stderr, nowMs } = this.#environment;
    const now = nowMs();
    if (this.#screen.json || now < this.#nextAtMs) return;
    this.#nextAtMs = now + (stderr.isTTY === true ? REWRITE_EVERY_MS : LINE_EVERY_MS);
    if (stderr.isTTY === true) this.#screen.progress(progressText(progress));
    else stderr.write(`${progressText(progress)}\n`);
  }

  /** Writes a line that stays, also beside JSON: a runner that cannot go on must not be silent. */
  say(text: string): void {
    this.#screen.endProgress();
    this.#environment.stderr.write(`${text}\n`);
  }
}

function progressText({ records, counted, lagMs, shardsHeld, shardsSeen }: RunnerProgress): string {
  const [read, changes] = [numberText(records), numberText(counted)];
  const lag = numberText(Math.round(lagMs / 1000));
  return `${read} records, ${changes} counted, lag ${lag} s, ${shardsHeld} of ${shardsSeen} shards`;
}

/** The report of a runner, as a sentence. */
export function problemText(problem: RunnerProblem): string {
  const where = problem.shardId === undefined ? "" : ` (shard ${problem.shardId})`;
  if (problem.kind === "records-lost")
    return (
      "The stream has dropped records before they were read: it keeps them for a day. " +
      `Their usage is missing.${where}`
    );
  const { error, retryInMs } = problem;
  const message = printable(error instanceof Error ? error.message : String(error));
  return `${message} Trying again in ${numberText(retryInMs / 1000)} s.${where}`;
}
