/*
 * Reads one shard while its runner holds the lease of the stream.
 *
 *   read ──records──▶ process ──all──▶ read
 *    │                  └──failures──▶ note the records before the first of them, pause, process
 *    │                                 the rest
 *    ├──the shard ended──▶ "finished"
 *    ├──all of the start was read (`once`)──▶ "reached"
 *    └──the signal aborted──▶ after the batch that is under way: "stopped"
 */
import type { Clock } from "../../../system-clock.ts";
import { isTransient } from "../../table/retry.ts";
import type { Aggregator, BatchReport } from "../aggregator.ts";
import type { StreamRecord } from "../stream-record.ts";
import { CountedTime } from "./counted-time.ts";
import { computePauseMs, type RunnerProblem } from "./problem.ts";
import type { ShardProgress } from "./reading-order.ts";
import { ShardCursor, type Reading } from "./shard-cursor.ts";
import type { StartReached } from "./start-reached.ts";
import type { TableStream } from "./table-stream.ts";

/** Why a reader has ended. */
export type ReaderEnd = "finished" | "reached" | "stopped";

/** What a reader works with. */
export interface ReaderOptions {
  readonly shardId: string;
  /** The record to continue after; undefined to begin at the oldest. */
  readonly after: string | undefined;
  readonly stream: TableStream;
  readonly aggregator: Pick<Aggregator, "process">;
  readonly clock: Clock;
  /** Ends the reader after the batch that is under way. */
  readonly signal: AbortSignal;
  /** With `once`: recognises that all of the start was read. */
  readonly reached: StartReached | undefined;
  /** A batch was processed; undefined when there was nothing to read. */
  readonly onBatch: (report: BatchReport | undefined) => void;
  readonly onProgress: (progress: ShardProgress) => void;
  readonly onProblem: (problem: RunnerProblem) => void;
}

/** The pause after an empty reply, unless the end of the shard is waited for. */
const IDLE_PAUSE_MS = 1000;

/** Reads one shard of the stream, and has its records processed. */
export class ShardReader {
  readonly #options: ReaderOptions;
  readonly #cursor: ShardCursor;
  readonly #countedTime = new CountedTime();
  /** The last record up to which everything was processed. */
  #processedTo: string | undefined;

  constructor(options: ReaderOptions) {
    this.#options = options;
    this.#cursor = new ShardCursor(options);
    this.#processedTo = options.after;
  }

  /** Reads until it is stopped, or there is nothing left to do. */
  async run(): Promise<ReaderEnd> {
    const { clock, signal, reached } = this.#options;
    try {
      while (!signal.aborted) {
        const beganAtMs = clock.now();
        const reading = await this.#persist(async () => this.#cursor.next(signal));
        if (reading.lost) this.#reportLoss();
        await this.#processAll(reading);
        this.#countedTime.note(reading, beganAtMs);
        this.#reportProgress(reading.ended);
        if (reading.ended) return "finished";
        if (reached?.note(reading) === true) return "reached";
        if (reading.records.length === 0 && reached === undefined)
          await clock.sleep(IDLE_PAUSE_MS, signal);
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    }
    return "stopped";
  }

  /** Has all records of a reading processed, however often some of them fail. */
  async #processAll({ records }: Reading): Promise<void> {
    if (records.length === 0) return this.#options.onBatch(undefined);
    let left = records;
    for (let attempts = 1; left.length > 0; attempts += 1) {
      this.#options.signal.throwIfAborted();
      const { processed, error } = await this.#process(left);
      if (processed > 0) {
        this.#processedTo = left[processed - 1]!.sequenceNumber;
        this.#reportProgress(false);
        attempts = 1;
      }
      left = left.slice(processed);
      if (left.length > 0) await this.#pauseAfter(error, attempts);
    }
  }

  /** Processes records; those before the first failed one need not be processed again. */
  async #process(
    records: readonly StreamRecord[],
  ): Promise<{ readonly processed: number; readonly error: unknown }> {
    const { aggregator, onBatch } = this.#options;
    let report: BatchReport;
    try {
      report = await aggregator.process(records);
    } catch (error) {
      return { processed: 0, error };
    }
    onBatch(report);
    const [first] = report.failures;
    if (first === undefined) return { processed: records.length, error: undefined };
    const index = records.findIndex(
      ({ sequenceNumber }) => sequenceNumber === first.sequenceNumber,
    );
    return { processed: Math.max(0, index), error: first.error };
  }

  /** Retries while the stream is unavailable. */
  async #persist<T>(work: () => Promise<T>): Promise<T> {
    for (let attempts = 1; ; attempts += 1) {
      try {
        return await work();
      } catch (error) {
        if (this.#options.signal.aborted || !isTransient(error)) throw error;
        await this.#pauseAfter(error, attempts);
      }
    }
  }

  async #pauseAfter(error: unknown, attempts: number): Promise<void> {
    const { shardId, clock, signal, onProblem } = this.#options;
    const retryInMs = computePauseMs(attempts);
    onProblem({ kind: "retry", shardId, error, attempts, retryInMs });
    await clock.sleep(retryInMs, signal);
  }

  #reportProgress(isFinished: boolean): void {
    this.#options.onProgress({
      sequenceNumber: this.#processedTo,
      countedUntilMs: this.#countedTime.untilMs,
      isFinished,
    });
  }

  #reportLoss(): void {
    const { shardId, onProblem } = this.#options;
    onProblem({ kind: "records-lost", shardId });
  }
}
