import { EventEmitter } from "node:events";
import { describe, expect, it } from "vitest";
import { InfrastructureError } from "zae-limiter";
import type { RunnerOptions, RunnerProgress, RunnerReport } from "zae-limiter/aggregator";
import { onInterrupt } from "../src/interrupt.ts";
import { zaeLimiter, type Outcome, type Setup } from "./command-line.ts";

const TABLE = "dynamodb://eu-west-1/limits?endpoint=http%3A%2F%2F127.0.0.1%3A8000";

const COUNTS = {
  records: 1200,
  counted: 1000,
  skipped: 0,
  snapshotWrites: 30,
  archived: 0,
  dropped: 0,
  splits: 0,
  merges: 0,
  checkpoints: 4,
};
const REPORT: RunnerReport = { ...COUNTS, ended: "counted" };
const PROGRESS: RunnerProgress = { ...COUNTS, lagMs: 3200, shardsHeld: 1, shardsSeen: 2 };

type Runner = (options: RunnerOptions) => Promise<RunnerReport>;

/** Runs the verb with a runner that does what the test says. */
async function aggregate(line: string, runner: Runner, setup: Setup = {}): Promise<Outcome> {
  const env = { ZAEL_REPOSITORY: TABLE };
  return zaeLimiter(`aggregate${line}`, {
    runAggregator: (options) => runner(options!),
    env,
    ...setup,
  });
}

it.each(["memory:", "sqlite:./limits.db"])("is wrong usage on %s", async (url) => {
  const outcome = await zaeLimiter("aggregate --once", { env: { ZAEL_REPOSITORY: url } });
  expect(outcome).toMatchObject({ code: 2, stdout: "" });
  expect(outcome.stderr).toContain("usage is recorded in the same write as the call");
});

it("runs on the table of the URL, and sums up what it did", async () => {
  const seen: RunnerOptions[] = [];
  const outcome = await aggregate(" --once", async (options) => {
    seen.push(options);
    return REPORT;
  });
  expect(seen[0]).toMatchObject({
    stack: "limits",
    region: "eu-west-1",
    endpointUrl: "http://127.0.0.1:8000",
    once: true,
  });
  expect(seen[0]).not.toHaveProperty("archive");
  expect(outcome).toMatchObject({ code: 0, stderr: "" });
  expect(outcome.stdout).toMatch(/^Records +1,200$/m);
  expect(outcome.stdout).toMatch(/^Everything that the stream held at the start is counted\.$/m);
});

it("prints the report alone with --json, and on standard error only problems", async () => {
  const outcome = await aggregate(" --json", async ({ onProgress, onProblem }) => {
    onProgress?.(PROGRESS);
    onProblem?.({ kind: "records-lost", shardId: "s-1" });
    return REPORT;
  });
  expect(outcome.code).toBe(0);
  expect(outcome.stderr).toMatch(/^The stream has dropped records .* \(shard s-1\)\n$/);
  expect(JSON.parse(outcome.stdout)).toEqual(REPORT);
});

it.each([["./archive"], ["s3://bucket/audit"]])("archives to %s", async (place) => {
  const seen: RunnerOptions[] = [];
  await aggregate(` --archive ${place}`, async (options) => {
    seen.push(options);
    return REPORT;
  });
  expect(seen[0]?.archive).toBeDefined();
});

it.each(["S3://bucket", "s3://No", "https://s3.example.com/bucket", "file:///archive"])(
  "does not take %s for a folder",
  async (place) => {
    const outcome = await aggregate(` --archive ${place}`, async () => REPORT);
    expect(outcome).toMatchObject({ code: 2, stdout: "" });
    expect(outcome.stderr).toContain("must look like s3://my-bucket/prefix");
  },
);

it("an error of the runner is an error of the verb", async () => {
  const missing = new InfrastructureError("ERR_LIMITER_STREAM_MISSING", "Table limits has none.");
  const outcome = await aggregate("", () => Promise.reject(missing));
  expect(outcome).toEqual({ code: 1, stdout: "", stderr: "error: Table limits has none.\n" });
});

/** Progress at these times, and a problem at the end. */
const progressing =
  (timesMs: readonly number[], clock: { nowMs: number }): Runner =>
  async ({ onProgress, onProblem }) => {
    for (const time of timesMs) {
      clock.nowMs = time;
      onProgress?.(PROGRESS);
    }
    const error = new Error("It is\u001B[31m away.");
    onProblem?.({ kind: "retry", shardId: "s-1", error, attempts: 1, retryInMs: 500 });
    onProblem?.({ kind: "records-lost", shardId: "s-1" });
    return REPORT;
  };

describe("progress", () => {
  it("is a line every ten seconds where standard error is not a terminal", async () => {
    const clock = { nowMs: 0 };
    const runner = progressing([0, 5_000, 9_999, 10_000, 12_000], clock);
    const { stderr } = await aggregate("", runner, { nowMs: () => clock.nowMs });
    const line = "1,200 records, 1,000 counted, lag 3 s, 1 of 2 shards";
    expect(stderr.split("\n")).toEqual([
      line,
      line,
      "It is\\u001b[31m away. Trying again in 0.5 s. (shard s-1)",
      expect.stringContaining("dropped records"),
      "",
    ]);
  });

  it("is one line that is rewritten on a terminal", async () => {
    const clock = { nowMs: 0 };
    const runner = progressing([0, 100, 300], clock);
    const { stderr } = await aggregate("", runner, { nowMs: () => clock.nowMs, terminal: true });
    expect(stderr.match(/\r1,200 records/g)).toHaveLength(2);
    expect(stderr.split("\n")).toHaveLength(3);
  });
});

describe("an interrupt", () => {
  it("ends the runner, and exits 0 with what it did", async () => {
    const outcome = await aggregate(
      "",
      ({ signal }) =>
        new Promise((resolve) => {
          signal?.addEventListener("abort", () => resolve({ ...REPORT, ended: "stopped" }));
        }),
      { onListening: (interrupt) => setImmediate(interrupt) },
    );
    expect(outcome.code).toBe(0);
    expect(outcome.stdout).toMatch(/^Stopped\. The next run continues here\.$/m);
    expect(outcome.stderr).toMatch(/^Ending after the batches that are under way\./);
  });

  it("ends the process at once when it comes again", () => {
    const exits: unknown[] = [];
    const target = Object.assign(new EventEmitter(), { exit: (code: number) => exits.push(code) });
    let calls = 0;
    const stop = onInterrupt(target as never, () => (calls += 1));
    target.emit("SIGTERM");
    expect({ calls, exits }).toEqual({ calls: 1, exits: [] });
    target.emit("SIGINT");
    expect(exits).toEqual([130]);
    stop();
    expect(target.listenerCount("SIGINT") + target.listenerCount("SIGTERM")).toBe(0);
  });

  it("is also a closed output, reported once, for verbs that ask for it", () => {
    const [stdout, stderr] = [new EventEmitter(), new EventEmitter()];
    const exits: unknown[] = [];
    const exit = (code: number): unknown => exits.push(code);
    const target = Object.assign(new EventEmitter(), { stdout, stderr, exit });
    for (const stream of [stdout, stderr]) stream.on("error", () => {});
    let [calls, others] = [0, 0];
    const stop = onInterrupt(target as never, () => (calls += 1), { orUnread: true });
    onInterrupt(target as never, () => (others += 1));
    for (const stream of [stderr, stderr, stdout]) stream.emit("error", new Error("EPIPE"));
    expect({ calls, others, exits }).toEqual({ calls: 1, others: 0, exits: [] });
    target.emit("SIGINT");
    expect(exits).toEqual([130]);
    stop();
    expect(stdout.listenerCount("error") + stderr.listenerCount("error")).toBe(2);
  });

  it("of a runner that ends by itself is only a signal", async () => {
    const asked: unknown[] = [];
    for (const flags of ["", " --once"])
      await aggregate(flags, async () => REPORT, {
        onListening: (_, options) => asked.push(options),
      });
    expect(asked).toEqual([{ orUnread: true }, { orUnread: false }]);
  });
});
