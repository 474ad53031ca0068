import { ManualClock, seededRandom } from "zae-limiter/testing";
import { USAGE_WINDOWS } from "../../src/core/usage.ts";
import { StreamAggregator } from "../../src/repository/dynamodb/aggregator/aggregator.ts";
import type { RunnerProblem } from "../../src/repository/dynamodb/aggregator/runner/problem.ts";
import {
  StreamRunner,
  type RunnerProgress,
  type RunnerReport,
} from "../../src/repository/dynamodb/aggregator/runner/stream-runner.ts";
import type { StreamRecord } from "../../src/repository/dynamodb/aggregator/stream-record.ts";
import { Connection } from "../../src/repository/dynamodb/table/connection.ts";
import { translateError } from "../../src/repository/dynamodb/table/table-errors.ts";
import { getString } from "../../src/repository/dynamodb/transport/attribute-values.ts";
import type { StreamedTable } from "./streamed-table.ts";

/** A runner on a table in memory, and what a test does to it. */
export interface StartedRunner {
  readonly progress: RunnerProgress[];
  readonly problems: RunnerProblem[];
  readonly batches: (readonly StreamRecord[])[];
  /** Ends it as a signal does. */
  stop(): void;
  /** The same, and waits until it has ended. */
  end(): Promise<void>;
  /** Ends it as `kill -9` does: nothing that it sends is answered any more. */
  kill(): void;
  /** Pauses its process: nothing is sent until `goOn` is called. */
  pause(): void;
  goOn(): void;
  readonly ended: Promise<RunnerReport>;
  /** Its report; undefined while it runs. */
  report: RunnerReport | undefined;
}

interface Setup {
  readonly once?: boolean;
  /** Called with each batch before it is processed; what it throws fails the batch. */
  readonly onBatch?: (records: readonly StreamRecord[]) => Promise<void> | void;
  /** Records that fail. */
  readonly fails?: (record: StreamRecord) => boolean;
  /** Called with all progress; what it throws is the caller's error. */
  readonly onProgress?: (progress: RunnerProgress) => void;
}

let runners = 0;

/** Starts a runner. */
export function startRunner(
  table: StreamedTable,
  clock: ManualClock,
  setup: Setup = {},
): StartedRunner {
  let isDead = false;
  let goOn: (() => void) | undefined;
  let pause = Promise.resolve();
  const never = new Promise<never>(() => {});
  const alive = async <T>(call: () => Promise<T>): Promise<T> => {
    await pause;
    return isDead ? never : call();
  };
  const translating = async <T>(call: () => Promise<T>): Promise<T> =>
    alive(call).catch((error: unknown) => {
      throw translateError(error, { tableName: "table", operation: "a call" });
    });
  const connection = new Connection({
    transport: {
      call: async (operation, input) => alive(async () => table.call(operation, input)),
      close: () => {},
    },
    tableName: "table",
    clock,
    random: seededRandom(1),
    requestTimeoutMs: 600_000,
    maxAttempts: 1,
  });
  const inner = new StreamAggregator({
    connection,
    windows: USAGE_WINDOWS,
    archive: undefined,
    ttlMultiplier: 7,
  });
  const progress: RunnerProgress[] = [];
  const problems: RunnerProblem[] = [];
  const batches: (readonly StreamRecord[])[] = [];
  const controller = new AbortController();
  runners += 1;
  const runner = new StreamRunner({
    connection,
    aggregator: {
      process: async (records) => {
        batches.push(records);
        await setup.onBatch?.(records);
        const failed = records.filter((record) => setup.fails?.(record) === true);
        const report = await inner.processWithoutHeartbeat(
          records.filter((record) => !failed.includes(record)),
        );
        const failures = failed.map(({ sequenceNumber }) => ({
          sequenceNumber,
          error: new Error("it fails"),
        }));
        return { ...report, failures };
      },
    },
    heartbeat: inner.heartbeat,
    stream: {
      label: table.label,
      shards: async () => translating(async () => table.shards()),
      iterator: async (shardId, after) => translating(async () => table.iterator(shardId, after)),
      read: async (iterator) => translating(async () => table.read(iterator)),
    },
    runnerId: `runner-${runners}`,
    once: setup.once ?? false,
    onProgress: (next) => {
      progress.push(next);
      setup.onProgress?.(next);
    },
    onProblem: (problem) => problems.push(problem),
  });
  const started: StartedRunner = {
    progress,
    problems,
    batches,
    stop: () => controller.abort(),
    end: async () => {
      controller.abort();
      await until(clock, () => started.report !== undefined);
    },
    kill: () => (isDead = true),
    pause: () => {
      pause = new Promise((resolve) => (goOn = resolve));
    },
    goOn: () => goOn?.(),
    ended: runner.run(controller.signal),
    report: undefined,
  };
  started.ended.then(
    (report) => (started.report = report),
    () => {},
  );
  return started;
}

/** What is stored of the runners, and of one shard of the stream. */
export function storedState(
  table: StreamedTable,
  shardId = "shard-1",
): {
  readonly owner: string | undefined;
  readonly checkpoint: string | undefined;
  readonly finished: boolean;
} {
  const item = table.system("#STREAM");
  const shards = item?.["shards"];
  const shard = shards !== undefined && "M" in shards ? shards.M[shardId] : undefined;
  const stored = shard !== undefined && "M" in shard ? shard.M : {};
  return {
    owner: getString(item?.["owner"]),
    checkpoint: getString(stored["sequence_number"]),
    finished: stored["finished"] !== undefined,
  };
}

/** The records of buckets that a runner has processed, each time anew. */
export function bucketRecords({ batches }: StartedRunner): readonly StreamRecord[] {
  return batches.flat().filter(({ after }) => after?.["b_rpm_tc"] !== undefined);
}

/** Moves time until something holds, in steps that are shorter than any pause. */
export async function until(
  clock: ManualClock,
  condition: () => boolean,
  mostMs = 120_000,
): Promise<void> {
  for (let passed = 0; !condition(); passed += 200) {
    if (passed > mostMs) throw new Error(`Not within ${mostMs} ms`);
    await clock.advance(200);
  }
}

/** A clock in the middle of an hour. */
export function clockAt(): ManualClock {
  return new ManualClock(Date.UTC(2026, 0, 4, 12, 30));
}
