/*
 * One runner reads the whole stream, and the others stand by: they try to take its lease, and do
 * nothing else until they have it.
 *
 *   standing by ──take──▶ reading ──the lease ends, or another has it──▶ standing by
 *                            └──stopped, or `once` and all counted──▶ release
 *
 * While it reads, a runner has a reader for each shard that can be read. Each turn renews the lease
 * and stores the checkpoints with it. After a crash the next runner reads some seconds again, which
 * count once.
 */
import type { Connection } from "../../table/connection.ts";
import { isTransient } from "../../table/retry.ts";
import type { Aggregator, AggregatorCounts, BatchReport } from "../aggregator.ts";
import type { Heartbeat } from "../heartbeat.ts";
import { computePauseMs, type RunnerProblem } from "./problem.ts";
import {
  computeCountedUntil,
  findReadable,
  isClosed,
  type ShardProgress,
} from "./reading-order.ts";
import { ShardReader } from "./shard-reader.ts";
import { isCertainlyAfter, StartReached } from "./start-reached.ts";
import { RENEW_EVERY_MS, StreamLease, type StoredProgress } from "./stream-lease.ts";
import type { StreamShard, TableStream } from "./table-stream.ts";

/** What a runner has done since it was started. */
export interface RunnerCounts extends AggregatorCounts {
  /** Checkpoints that were stored. */
  readonly checkpoints: number;
}

/** How far a runner is. */
export interface RunnerProgress extends RunnerCounts {
  /** How long ago the oldest record of the last batch was written; 0 when nothing was left. */
  readonly lagMs: number;
  /** Shards of the stream that this runner reads; 0 while it stands by. */
  readonly shardsHeld: number;
  /** Shards of the stream that were not read to their end. */
  readonly shardsSeen: number;
}

/** What a runner did until it ended. */
export interface RunnerReport extends RunnerCounts {
  /** Whether everything of the start is counted (`once`), or the runner was stopped. */
  readonly ended: "counted" | "stopped";
}

/** What a runner is made of. */
export interface StreamRunnerOptions {
  readonly connection: Connection;
  readonly aggregator: Pick<Aggregator, "process">;
  readonly heartbeat: Pick<Heartbeat, "storeCountedUntil">;
  readonly stream: TableStream;
  readonly runnerId: string;
  readonly once: boolean;
  readonly onProgress?: ((progress: RunnerProgress) => void) | undefined;
  readonly onProblem?: ((problem: RunnerProblem) => void) | undefined;
}

/** How often a runner renews its lease, or tries to take it. */
const TURN_EVERY_MS = RENEW_EVERY_MS;

/** How often shards are listed. A shard lives for hours, and its children wait for it anyway. */
const LIST_EVERY_MS = 10_000;

/** How often a heartbeat is written. */
const BEAT_EVERY_MS = 30_000;

/**
 * How long ago a shard that is not in the list must have been counted before its rest is lost: a
 * list of shards may be some seconds older than what is stored of them.
 */
const MISSED_AFTER_MS = 3_600_000;

const NO_COUNTS: RunnerCounts = {
  records: 0,
  counted: 0,
  skipped: 0,
  snapshotWrites: 0,
  archived: 0,
  dropped: 0,
  splits: 0,
  merges: 0,
  checkpoints: 0,
};

/** Reads the shards of a stream while it holds the lease, and stands by while another does. */
export class StreamRunner {
  readonly #options: StreamRunnerOptions;
  readonly #lease: StreamLease;
  /** The shards that are being read. */
  readonly #readers = new Map<string, Promise<void>>();
  readonly #lags = new Map<string, number>();
  /** `once`: shards in which everything of the start is counted. */
  readonly #done = new Set<string>();
  #progress = new Map<string, ShardProgress>();
  /** Until when the stream was counted when this runner took the lease. */
  #countedAtTakeMs = -Infinity;
  #startMs = 0;
  #shards: readonly StreamShard[] = [];
  #listAgainAtMs = -Infinity;
  #beatAtMs = -Infinity;
  #counts = NO_COUNTS;
  /** Ends the readers of this runner's time with the lease. */
  #ending = new AbortController();
  #wake = new AbortController();
  #fatal: { readonly error: unknown } | undefined;

  constructor(options: StreamRunnerOptions) {
    const { connection, runnerId, stream } = options;
    this.#options = options;
    this.#lease = new StreamLease({ connection, runnerId, streamLabel: stream.label });
  }

  /** Works until the signal aborts, or with `once` until everything is counted. */
  async run(signal?: AbortSignal): Promise<RunnerReport> {
    this.#startMs = this.#options.connection.clock.now();
    const wake = (): void => this.#wake.abort();
    signal?.addEventListener("abort", wake);
    let isCounted: boolean;
    try {
      isCounted = await this.#takeTurns(signal);
    } catch (error) {
      await this.#leave().catch(() => undefined);
      throw error;
    } finally {
      signal?.removeEventListener("abort", wake);
    }
    await this.#leave();
    if (isCounted) await this.#options.heartbeat.storeCountedUntil(this.#startMs);
    return { ...this.#counts, ended: isCounted ? "counted" : "stopped" };
  }

  /** Takes one turn after another; true when everything of the start is counted. */
  async #takeTurns(signal: AbortSignal | undefined): Promise<boolean> {
    const { onProblem } = this.#options;
    const isStopped = (): boolean => signal?.aborted === true;
    for (let attempts = 0; !isStopped();) {
      this.#wake = new AbortController();
      let pauseMs = TURN_EVERY_MS;
      try {
        if (await this.#takeTurn()) return true;
        attempts = 0;
      } catch (error) {
        if (isStopped()) return false;
        if (!isTransient(error)) throw error;
        attempts += 1;
        pauseMs = computePauseMs(attempts);
        // A lease that is still held may be renewed by the next turn.
        if (this.#lease.isHeld) pauseMs = Math.min(pauseMs, TURN_EVERY_MS);
        const problem = { shardId: undefined, error, attempts, retryInMs: pauseMs };
        onProblem?.({ kind: "retry", ...problem });
      }
      if (!isStopped()) await this.#sleep(pauseMs);
      if (this.#fatal !== undefined) throw this.#fatal.error;
    }
    return false;
  }

  /** Sleeps until the next turn; a reader that ends and a signal that aborts wake it. */
  async #sleep(ms: number): Promise<void> {
    const { signal } = this.#wake;
    await this.#options.connection.clock.sleep(ms, signal).catch((error: unknown) => {
      if (!signal.aborted) throw error;
    });
  }

  /** One turn; true when everything of the start is counted, by this runner or by another. */
  async #takeTurn(): Promise<boolean> {
    if (this.#lease.isHeld) this.#countCheckpoint(await this.#lease.renew(this.#buildProgress()));
    if (!this.#lease.isHeld) {
      const stored = await this.#take();
      if (!this.#lease.isHeld) return this.#isCountedByOther(stored);
    }
    await this.#list();
    for (const shard of findReadable(this.#shards, this.#progress)) this.#read(shard);
    this.#report(this.#countOpen());
    await this.#beat();
    return this.#options.once && this.#isCounted();
  }

  /** Ends what it read with an earlier lease, and takes the lease if it is free. */
  async #take(): Promise<StoredProgress> {
    await this.#endReaders();
    const stored = await this.#lease.take();
    this.#progress = new Map(stored.shards);
    this.#countedAtTakeMs = stored.countedUntilMs ?? -Infinity;
    this.#listAgainAtMs = -Infinity;
    return stored;
  }

  #isCountedByOther({ shards, countedUntilMs }: StoredProgress): boolean {
    this.#report([...shards.values()].filter(({ isFinished }) => !isFinished).length);
    return (
      this.#options.once &&
      countedUntilMs !== undefined &&
      isCertainlyAfter(countedUntilMs, this.#startMs)
    );
  }

  #isCounted(): boolean {
    return this.#shards.every(
      ({ shardId }) => this.#done.has(shardId) || this.#progress.get(shardId)?.isFinished === true,
    );
  }

  #buildProgress(): StoredProgress {
    return {
      shards: this.#progress,
      countedUntilMs: computeCountedUntil(this.#shards, this.#progress),
    };
  }

  async #list(): Promise<void> {
    const nowMs = this.#options.connection.clock.now();
    if (nowMs < this.#listAgainAtMs) return;
    this.#shards = await this.#options.stream.shards();
    this.#listAgainAtMs = nowMs + LIST_EVERY_MS;
    this.#forgetUnlisted(nowMs);
  }

  /**
   * Forgets shards that left the stream, which keeps them for a day. One that was not read to its
   * end is reported: that happens where no runner has worked for longer than that.
   */
  #forgetUnlisted(nowMs: number): void {
    const listed = new Set(this.#shards.map(({ shardId }) => shardId));
    const isLongAgo = this.#countedAtTakeMs < nowMs - MISSED_AFTER_MS;
    for (const [shardId, { isFinished }] of this.#progress) {
      if (listed.has(shardId) || this.#readers.has(shardId)) continue;
      if (!isFinished && !isLongAgo) continue;
      this.#progress.delete(shardId);
      if (!isFinished) this.#options.onProblem?.({ kind: "records-lost", shardId });
    }
  }

  /** Begins to read a shard, unless it is being read. */
  #read({ shardId }: StreamShard): void {
    if (this.#readers.has(shardId) || this.#done.has(shardId)) return;
    const { connection, stream, aggregator, onProblem, once } = this.#options;
    const reader = new ShardReader({
      shardId,
      after: this.#progress.get(shardId)?.sequenceNumber,
      stream,
      aggregator,
      clock: connection.clock,
      signal: this.#ending.signal,
      reached: once
        ? new StartReached({
            startMs: this.#startMs,
            isClosed: isClosed({ shardId }, this.#shards),
          })
        : undefined,
      onBatch: (report) => this.#count(shardId, report),
      onProgress: (progress) => this.#progress.set(shardId, progress),
      onProblem: (problem) => onProblem?.(problem),
    });
    this.#readers.set(shardId, this.#readToEnd(shardId, reader));
  }

  async #readToEnd(shardId: string, reader: ShardReader): Promise<void> {
    try {
      const end = await reader.run();
      if (end === "reached") this.#done.add(shardId);
      // Its children may be read now.
      if (end === "finished") this.#listAgainAtMs = -Infinity;
    } catch (error) {
      this.#fatal ??= { error };
    }
    this.#readers.delete(shardId);
    this.#lags.delete(shardId);
    this.#wake.abort();
  }

  /** Ends the readers after the batches that are under way. */
  async #endReaders(): Promise<void> {
    this.#ending.abort();
    await Promise.all(this.#readers.values());
    this.#ending = new AbortController();
  }

  #count(shardId: string, report: BatchReport | undefined): void {
    this.#lags.set(shardId, report?.lagMs ?? 0);
    if (report !== undefined) this.#counts = addCounts(this.#counts, report);
    this.#report(this.#countOpen());
  }

  #countCheckpoint(isStored: boolean): void {
    if (isStored) this.#counts = { ...this.#counts, checkpoints: this.#counts.checkpoints + 1 };
  }

  /** How many shards were not read to their end. */
  #countOpen(): number {
    return this.#shards.filter(({ shardId }) => !this.#progress.get(shardId)?.isFinished).length;
  }

  #report(shardsSeen: number): void {
    this.#options.onProgress?.({
      ...this.#counts,
      lagMs: Math.max(0, ...this.#lags.values()),
      shardsHeld: this.#readers.size,
      shardsSeen,
    });
  }

  /** Stores now and then, for readers of usage, until when it is counted in all shards. */
  async #beat(): Promise<void> {
    const { connection, heartbeat } = this.#options;
    const nowMs = connection.clock.now();
    const { countedUntilMs } = this.#buildProgress();
    if (countedUntilMs === undefined || nowMs < this.#beatAtMs) return;
    await heartbeat.storeCountedUntil(countedUntilMs);
    this.#beatAtMs = nowMs + BEAT_EVERY_MS;
  }

  /** Ends the readers and gives the lease back. */
  async #leave(): Promise<void> {
    await this.#endReaders();
    // A lease that cannot be given back now ends by itself.
    const released = this.#lease.release(this.#buildProgress()).catch(() => false);
    this.#countCheckpoint(await released);
    if (this.#fatal !== undefined) throw this.#fatal.error;
  }
}

function addCounts(counts: RunnerCounts, report: BatchReport): RunnerCounts {
  return {
    ...counts,
    records: counts.records + report.records,
    counted: counts.counted + report.counted,
    skipped: counts.skipped + report.skipped,
    snapshotWrites: counts.snapshotWrites + report.snapshotWrites,
    archived: counts.archived + report.archived,
    dropped: counts.dropped + report.dropped,
    splits: counts.splits + report.splits,
    merges: counts.merges + report.merges,
  };
}
