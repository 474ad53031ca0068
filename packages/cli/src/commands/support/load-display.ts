import type { Command } from "commander";
import type { LoadReport, LoadTest, Surroundings } from "artillery-engine-zae-limiter/run";
import { growingRowText } from "../../output/load-test.ts";
import type { Screen } from "../../output/screen.ts";
import type { Session } from "./session.ts";

type Runner = typeof import("artillery-engine-zae-limiter/run");

/** Runs load tests with the Artillery of the project, and shows each period as it ends. */
export class LoadDisplay {
  readonly screen: Screen;
  readonly #session: Session;
  readonly #runner: Runner;
  readonly #artillery: Surroundings["artillery"];

  /** Throws if the project has no Artillery. */
  constructor(session: Session, command: Command, runner: Runner) {
    this.#session = session;
    this.#runner = runner;
    this.screen = session.screen(command);
    this.#artillery = runner.findArtillery(process.cwd(), session.environment.nodeVersion);
  }

  /** Runs one test. */
  async run(
    test: LoadTest,
    surroundings: Pick<Surroundings, "repository" | "signal">,
  ): Promise<LoadReport> {
    const { periodCells, PERIOD_HEADERS, runLoadTest } = this.#runner;
    const { env, nowMs } = this.#session.environment;
    const { screen } = this;
    const startedMs = nowMs();
    const timer = setInterval(
      () => screen.progress(`${Math.round((nowMs() - startedMs) / 1000)} s`),
      1000,
    );
    let isFirst = true;
    try {
      return await runLoadTest(test, {
        ...surroundings,
        artillery: this.#artillery,
        env,
        onPeriod: (row) => {
          screen.endProgress();
          if (screen.json) return;
          if (isFirst) screen.notice(growingRowText(PERIOD_HEADERS, PERIOD_HEADERS));
          isFirst = false;
          screen.notice(growingRowText(PERIOD_HEADERS, periodCells(row)));
        },
      });
    } finally {
      clearInterval(timer);
      screen.endProgress();
    }
  }

  /** Ends the work at the first Ctrl-C; what it has until then is reported. */
  async untilInterrupt<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const stopping = new AbortController();
    const stopListening = this.#session.environment.onInterrupt(() => {
      this.screen.endProgress();
      this.screen.notice("Ending the load. Interrupt again to end at once.");
      stopping.abort();
    });
    try {
      return await work(stopping.signal);
    } finally {
      stopListening();
    }
  }
}
