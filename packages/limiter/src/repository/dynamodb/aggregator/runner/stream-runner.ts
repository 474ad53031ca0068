import type { Connection } from "../../table/connection.ts";
import { isTransient } from "../../table/retry.ts";
import type { Aggregator, AggregatorCounts, BatchReport } from "../aggregator.ts";
import type { Heartbeat } from "../heartbeat.ts";
import {
  assignmentOf,
  countedUntil,
  isClosed,
  missedShards,
  type Assignment,
} from "./assignment.ts";
import { growingPauseMs, type RunnerProblem } from "./problem.ts";
import { RENEW_EVERY_MS, ShardStates, type ShardState, type StoredStates } from "./shard-states.ts";
import { ShardWatch } from "./shard-watch.ts";
import { ShardWorker } from "./shard-worker.ts";
import { StartReached } from "./start-reached.ts";
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
  /** Shards of the stream that this runner reads. */
  readonly shardsHeld: number;
  /** Shards of the stream that were not read to their end, whoever reads them. */
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
  readonly heartbeat: Pick<Heartbeat, "countedUntil">;
  readonly stream: TableStream;
  readonly runnerId: string;
  readonly once: boolean;
  readonly onProgress?: ((progress: RunnerProgress) => void) | undefined;
  readonly onProblem?: ((problem: RunnerProblem) => void) | undefined;
}

/** How often a runner looks which shards are free: as often as leases are renewed. */
const LOOK_EVERY_MS = RENEW_EVERY_MS;

/** How often shards are listed. A shard lives for hours, and its children wait for it anyway. */
const LIST_EVERY_MS = 10_000;

/** How often a heartbeat is written. */
const BEAT_EVERY_MS = 30_000;

const NOTHING: RunnerCounts = {
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

/** Takes its share of the shards of a stream, again and again, and has a worker read each. */
export class StreamRunner {
  readonly #options: StreamRunnerOptions;
  readonly #states: ShardStates;
  readonly #workers = new Map<string, ShardWorker>();
  readonly #running = new Set<Promise<void>>();
  readonly #watches = new Map<string, ShardWatch>();
  readonly #lags = new Map<string, number>();
  /** `once`: shards in which everything of the start is counted. */
  readonly #done = new Set<string>();
  /** `once`: the shards of the start. */
  #targets: ReadonlySet<string> | undefined;
  #startMs = 0;
  #shards: readonly StreamShard[] = [];
  #listAgainAtMs = -Infinity;
  #beatAtMs = -Infinity;
  #isAnnounced = false;
  #shardsSeen = 0;
  #counts = NOTHING;
  #wake = new AbortController();
  #fatal: { readonly error: unknown } | undefined;

  constructor(options: StreamRunnerOptions) {
    const { connection, runnerId, stream } = options;
    this.#options = options;
    this.#states = new ShardStates({ connection, runnerId, streamLabel: stream.label });
  }

  /** Works until the signal aborts, or with `once` until everything is counted. */
  async run(signal?: AbortSignal): Promise<RunnerReport> {
    this.#startMs = this.#options.connection.clock.now();
    const wake = (): void => this.#wake.abort();
    signal?.addEventListener("abort", wake);
    let isCounted: boolean;
    try {
      isCounted = await this.#looks(signal);
    } catch (error) {
      await this.#leave().catch(() => undefined);
      throw error;
    } finally {
      signal?.removeEventListener("abort", wake);
    }
    await this.#leave();
    if (isCounted) await this.#options.heartbeat.countedUntil(this.#startMs);
    return { ...this.#counts, ended: isCounted ? "counted" : "stopped" };
  }

  /** Looks again and again; true when everything of the start is counted. */
  async #looks(signal: AbortSignal | undefined): Promise<boolean> {
    const { connection, onProblem } = this.#options;
    const isStopped = (): boolean => signal?.aborted === true;
    for (let attempts = 0; !isStopped();) {
      this.#wake = new AbortController();
      let pauseMs = LOOK_EVERY_MS;
      try {
        if (await this.#look(signal)) return true;
        attempts = 0;
      } catch (error) {
        if (isStopped()) return false;
        if (!isTransient(error)) throw error;
        attempts += 1;
        pauseMs = growingPauseMs(attempts);
        const problem = { shardId: undefined, error, attempts, retryInMs: pauseMs };
        onProblem?.({ kind: "retry", ...problem });
      }
      if (!isStopped()) await this.#sleep(connection, pauseMs);
      if (this.#fatal !== undefined) throw this.#fatal.error;
    }
    return false;
  }

  /** Sleeps until the next look; a worker that ends and a signal that aborts wake it. */
  async #sleep({ clock }: Connection, ms: number): Promise<void> {
    const { signal } = this.#wake;
    await clock.sleep(ms, signal).catch((error: unknown) => {
      if (!signal.aborted) throw error;
    });
  }

  async #look(signal: AbortSignal | undefined): Promise<boolean> {
    await this.#list();
    const stored = await this.#states.read();
    await this.#tellMissed(stored);
    const assignment = this.#assignment(stored);
    this.#shardsSeen = assignment.open.length;
    for (const shardId of assignment.giveBack) this.#workers.get(shardId)?.stop();
    for (const shardId of assignment.take)
      this.#start(await this.#states.take(shardId, stored.shards.get(shardId)));
    this.#report();
    await this.#showPresence(assignment);
    if (this.#options.once) return this.#isCounted(assignment, signal);
    await this.#beat(stored);
    return false;
  }

  async #list(): Promise<void> {
    const nowMs = this.#options.connection.clock.now();
    if (nowMs < this.#listAgainAtMs) return;
    this.#shards = await this.#options.stream.shards();
    this.#targets ??= new Set(this.#shards.map(({ shardId }) => shardId));
    this.#listAgainAtMs = nowMs + LIST_EVERY_MS;
  }

  #assignment(stored: StoredStates): Assignment {
    const { connection, stream, runnerId, once } = this.#options;
    const shards = once
      ? this.#shards.filter(({ shardId }) => this.#targets?.has(shardId))
      : this.#shards;
    return assignmentOf({
      streamLabel: stream.label,
      runnerId,
      nowMs: connection.clock.now(),
      shards,
      stored,
      held: new Set(this.#workers.keys()),
      done: this.#done,
    });
  }

  /** Tells of each shard that nobody can read to its end any more, once for all runners. */
  async #tellMissed(stored: StoredStates): Promise<void> {
    const { connection, stream, onProblem } = this.#options;
    const view = { shards: this.#shards, stored, streamLabel: stream.label };
    for (const state of missedShards({ ...view, nowMs: connection.clock.now() })) {
      const { shardId } = state;
      if ((await this.#states.take(shardId, state)) === undefined) continue;
      onProblem?.({ kind: "records-lost", shardId });
      await this.#states.finish(shardId);
    }
  }

  #start(state: ShardState | undefined): void {
    if (state === undefined) return;
    const { shardId } = state;
    const { connection, stream, aggregator, onProblem, once } = this.#options;
    const worker = new ShardWorker({
      state,
      stream,
      states: this.#states,
      aggregator,
      clock: connection.clock,
      reached: once ? this.#startReached(shardId) : undefined,
      onBatch: (report) => this.#count(shardId, report),
      onCheckpoint: () => {
        this.#counts = { ...this.#counts, checkpoints: this.#counts.checkpoints + 1 };
      },
      onProblem: (problem) => onProblem?.(problem),
    });
    this.#workers.set(shardId, worker);
    const running = this.#untilEnd(worker).finally(() => this.#running.delete(running));
    this.#running.add(running);
  }

  #startReached(shardId: string): StartReached {
    return new StartReached({
      startMs: this.#startMs,
      isClosed: isClosed(shardId, this.#shards),
    });
  }

  async #untilEnd(worker: ShardWorker): Promise<void> {
    const { shardId } = worker;
    try {
      const end = await worker.run().finally(() => {
        this.#workers.delete(shardId);
        this.#lags.delete(shardId);
      });
      const isDone = end === "reached" || end === "finished";
      if (isDone && this.#options.once) this.#done.add(shardId);
      // Its children may be read now.
      if (end === "finished") this.#listAgainAtMs = -Infinity;
      this.#report();
    } catch (error) {
      this.#fatal ??= { error };
    }
    this.#wake.abort();
  }

  #count(shardId: string, report: BatchReport | undefined): void {
    this.#lags.set(shardId, report?.lagMs ?? 0);
    if (report === undefined) return this.#report();
    const counts = this.#counts;
    this.#counts = {
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
    this.#report();
  }

  #report(): void {
    this.#options.onProgress?.({
      ...this.#counts,
      lagMs: Math.max(0, ...this.#lags.values()),
      shardsHeld: this.#workers.size,
      shardsSeen: this.#shardsSeen,
    });
  }

  /** A runner that holds a shard is seen by its lease; one that waits for a shard says so. */
  async #showPresence({ open }: Assignment): Promise<void> {
    const waits = this.#workers.size === 0 && open.length > 0;
    if (waits) await this.#states.announce();
    else if (this.#isAnnounced) await this.#states.withdraw();
    this.#isAnnounced = waits;
  }

  /**
   * Tells readers now and then until when usage is counted in all shards, whoever reads them. Only
   * runners that hold a shard do: with many runners, a few are enough.
   */
  async #beat(stored: StoredStates): Promise<void> {
    const { connection, stream, heartbeat } = this.#options;
    const nowMs = connection.clock.now();
    if (this.#workers.size === 0 || nowMs < this.#beatAtMs) return;
    const untilMs = countedUntil({ shards: this.#shards, stored, streamLabel: stream.label });
    if (untilMs === undefined) return;
    await heartbeat.countedUntil(untilMs);
    this.#beatAtMs = nowMs + BEAT_EVERY_MS;
  }

  /** Whether everything of the start is counted in all shards, by this runner or by others. */
  async #isCounted(
    { ofOthers, open }: Assignment,
    signal: AbortSignal | undefined,
  ): Promise<boolean> {
    const watched = await Promise.all(
      ofOthers.map(async (state) => ({ state, done: await this.#watch(state, signal) })),
    );
    for (const { state, done } of watched) if (done) this.#done.add(state.shardId);
    return open.every((shardId) => this.#done.has(shardId));
  }

  async #watch(state: ShardState, signal: AbortSignal | undefined): Promise<boolean> {
    const { shardId } = state;
    const { stream, connection } = this.#options;
    let watch = this.#watches.get(shardId);
    if (watch === undefined) {
      watch = new ShardWatch(state, {
        stream,
        clock: connection.clock,
        reached: this.#startReached(shardId),
      });
      this.#watches.set(shardId, watch);
    }
    return watch.look(state, signal);
  }

  /** Ends the workers after their batches, which give their leases back. */
  async #leave(): Promise<void> {
    for (const worker of this.#workers.values()) worker.stop();
    await Promise.all(this.#running);
    if (this.#isAnnounced) await this.#states.withdraw();
    if (this.#fatal !== undefined) throw this.#fatal.error;
  }
}
