/*
 * Reads one shard whose lease this runner holds.
 *
 *   read ──records──▶ process ──all──▶ checkpoint, if any of them was relevant ──▶ read
 *    │                  └──failures──▶ checkpoint before the first of them, pause, process the rest
 *    ├──the shard ended──▶ "finished"
 *    ├──all of the start was read (`once`)──▶ give the lease back: "reached"
 *    └──stop()──▶ after the batch that is under way, give the lease back: "stopped"
 *
 * Meanwhile the lease is renewed, and with it the checkpoint moves over what was not relevant. When
 * the lease is lost, nothing more is read or written: "lost".
 */
import type { Clock } from "../../../system-clock.ts";
import { isTransient } from "../../table/retry.ts";
import type { Aggregator, BatchReport } from "../aggregator.ts";
import type { StreamRecord } from "../stream-record.ts";
import { CountedTime } from "./counted-time.ts";
import { growingPauseMs, type RunnerProblem } from "./problem.ts";
import { isRelevant } from "./relevance.ts";
import { HOLDER_PACE_MS, ShardCursor, type Reading } from "./shard-cursor.ts";
import {
  LEASE_MS,
  RENEW_EVERY_MS,
  type ShardPlace,
  type ShardState,
  type ShardStates,
} from "./shard-states.ts";
import type { StartReached } from "./start-reached.ts";
import type { TableStream } from "./table-stream.ts";

/** Why a worker has ended. */
export type WorkerEnd = "finished" | "reached" | "stopped" | "lost";

/** What a worker works with. */
export interface WorkerOptions {
  readonly state: ShardState;
  readonly stream: TableStream;
  readonly states: ShardStates;
  readonly aggregator: Pick<Aggregator, "process">;
  readonly clock: Clock;
  /** With `once`: recognises that all of the start was read. */
  readonly reached: StartReached | undefined;
  /** A batch was processed; undefined when there was nothing to read. */
  readonly onBatch: (report: BatchReport | undefined) => void;
  readonly onCheckpoint: () => void;
  readonly onProblem: (problem: RunnerProblem) => void;
}

/** The pause after an empty reply, unless somebody waits for the end of the shard. */
const IDLE_PAUSE_MS = 1000;

/** Reads one shard of the stream, and has its records processed. */
export class ShardWorker {
  readonly shardId: string;
  readonly #options: WorkerOptions;
  readonly #cursor: ShardCursor;
  readonly #ending = new AbortController();
  #leaseUntilMs: number;
  /** The last record up to which everything was processed, since the worker began. */
  #processedTo: string | undefined;
  readonly #countedTime = new CountedTime();

  constructor(options: WorkerOptions) {
    const { state, stream, clock } = options;
    const { shardId, sequenceNumber: after } = state;
    this.shardId = shardId;
    this.#options = options;
    this.#cursor = new ShardCursor({ stream, shardId, after, clock, paceMs: HOLDER_PACE_MS });
    this.#leaseUntilMs = state.leaseUntilMs;
  }

  /** Ends the worker after the batch that is under way. */
  stop(): void {
    this.#ending.abort(new WorkerEnded("stopped"));
  }

  /** Works until it is stopped, the lease is lost, or there is nothing left to do. */
  async run(): Promise<WorkerEnd> {
    const renewals = this.#keepLease();
    try {
      return await this.#work();
    } finally {
      this.#ending.abort(new WorkerEnded("stopped"));
      await renewals;
    }
  }

  async #work(): Promise<WorkerEnd> {
    let end: WorkerEnd = "stopped";
    try {
      end = await this.#readAll();
      return end;
    } finally {
      // A lease that cannot be given back now ends by itself.
      if (end === "stopped" || end === "reached")
        await this.#options.states.release(this.shardId).catch(ignore);
    }
  }

  async #readAll(): Promise<WorkerEnd> {
    const { reached, states, clock } = this.#options;
    const { signal } = this.#ending;
    try {
      while (!signal.aborted) {
        const beganAtMs = clock.now();
        const reading = await this.#persist(async () => this.#cursor.next(signal));
        if (reading.lost) this.#tellLoss();
        await this.#processAll(reading);
        await this.#noteCounted(reading, beganAtMs);
        if (reading.ended) {
          await this.#owned(async () => states.finish(this.shardId));
          return "finished";
        }
        if (reached?.note(reading) === true) return "reached";
        if (reading.records.length === 0 && reached === undefined)
          await clock.sleep(IDLE_PAUSE_MS, signal);
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    }
    return (signal.reason as WorkerEnded).end;
  }

  /** What is known for the first time is stored at once: readers may be waiting for it. */
  async #noteCounted(reading: Reading, beganAtMs: number): Promise<void> {
    const wasKnown = this.#countedTime.untilMs !== undefined;
    this.#countedTime.note(reading, beganAtMs);
    if (wasKnown || this.#countedTime.untilMs === undefined || reading.ended) return;
    await this.#owned(async () => this.#options.states.renew(this.shardId, this.#place()));
  }

  /** Has all records of a reading processed, however often some of them fail. */
  async #processAll({ records }: Reading): Promise<void> {
    if (records.length === 0) return this.#options.onBatch(undefined);
    let left = records;
    for (let attempts = 1; left.length > 0; attempts += 1) {
      this.#ending.signal.throwIfAborted();
      const { processed, error } = await this.#process(left);
      await this.#checkpointAfter(left.slice(0, processed));
      if (processed > 0) attempts = 1;
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

  async #checkpointAfter(processed: readonly StreamRecord[]): Promise<void> {
    const { states, onCheckpoint } = this.#options;
    const sequenceNumber = processed.at(-1)?.sequenceNumber;
    if (sequenceNumber === undefined) return;
    this.#processedTo = sequenceNumber;
    if (!processed.some(isRelevant)) return;
    await this.#owned(async () => states.checkpoint(this.shardId, sequenceNumber));
    onCheckpoint();
  }

  /** A write that only the owner of the lease can make, and that renews it. */
  async #owned(write: () => Promise<boolean>): Promise<void> {
    const untilMs = this.#options.clock.now() + LEASE_MS;
    if (await this.#persist(write)) this.#leaseUntilMs = untilMs;
    else this.#lose();
    this.#throwIfLost();
  }

  /** Retries while the table or the stream is unavailable. */
  async #persist<T>(work: () => Promise<T>): Promise<T> {
    for (let attempts = 1; ; attempts += 1) {
      try {
        return await work();
      } catch (error) {
        if (this.#ending.signal.aborted || !isTransient(error)) throw error;
        await this.#pauseAfter(error, attempts);
      }
    }
  }

  async #pauseAfter(error: unknown, attempts: number): Promise<void> {
    const { clock, onProblem } = this.#options;
    const retryInMs = growingPauseMs(attempts);
    onProblem({ kind: "retry", shardId: this.shardId, error, attempts, retryInMs });
    await clock.sleep(retryInMs, this.#ending.signal);
  }

  /** Renews the lease until the worker ends. */
  async #keepLease(): Promise<void> {
    const { clock, states } = this.#options;
    const { signal } = this.#ending;
    try {
      for (;;) {
        await clock.sleep(RENEW_EVERY_MS, signal);
        const nowMs = clock.now();
        try {
          if (await states.renew(this.shardId, this.#place()))
            this.#leaseUntilMs = nowMs + LEASE_MS;
          else return this.#lose();
        } catch {
          // The next renewal may succeed, as long as the lease lasts.
          if (clock.now() >= this.#leaseUntilMs) return this.#lose();
        }
      }
    } catch {
      // The worker has ended.
    }
  }

  #place(): ShardPlace {
    return { sequenceNumber: this.#processedTo, countedUntilMs: this.#countedTime.untilMs };
  }

  #lose(): void {
    this.#ending.abort(new WorkerEnded("lost"));
  }

  #throwIfLost(): void {
    const { signal } = this.#ending;
    if (signal.aborted && (signal.reason as WorkerEnded).end === "lost") throw signal.reason;
  }

  #tellLoss(): void {
    this.#options.onProblem({ kind: "records-lost", shardId: this.shardId });
  }
}

/** The reason for which a worker ends early. */
class WorkerEnded extends Error {
  readonly end: "stopped" | "lost";

  constructor(end: "stopped" | "lost") {
    super(`The work on a shard was ${end}`);
    this.end = end;
  }
}

function ignore(): void {}
