import type { BatchReport, RawStreamRecord, StreamRecord } from "zae-limiter/aggregator";
import { expect, it } from "vitest";
import { QUIET } from "../test/support/quiet-report.ts";
import type { LambdaContext } from "../runtime/lambda-context.ts";
import { invoke, type BatchResponse, type InvocationContext } from "./invocation.ts";

const NOW_MS = Date.UTC(2026, 0, 15);

/** An aggregator that only notes what it is asked for, and the lines that were printed. */
class World {
  readonly lines: string[] = [];
  readonly batches: (readonly StreamRecord[])[] = [];
  readonly limitsMs: (number | undefined)[] = [];
  pulses = 0;
  report: Partial<BatchReport> = {};

  invoke(event: unknown, lambda?: LambdaContext): Promise<BatchResponse> {
    const context: InvocationContext = {
      aggregator: {
        process: async (records, options) => {
          this.batches.push(records);
          this.limitsMs.push(options?.withinMs);
          return { ...QUIET, records: records.length, ...this.report };
        },
        pulse: async () => void (this.pulses += 1),
      },
      tableName: "limits",
      print: (line) => this.lines.push(line),
      now: () => NOW_MS,
    };
    return invoke(event, context, lambda);
  }

  /** The lines that are not metrics. */
  get log(): readonly unknown[] {
    return this.lines.map((line) => JSON.parse(line) as object).filter((line) => !("_aws" in line));
  }
}

function record(sequenceNumber: string): RawStreamRecord {
  return {
    eventName: "MODIFY",
    eventSourceARN: "arn:aws:dynamodb:eu-west-1:1:table/limits/stream/2026-01-01T00:00:00.000",
    dynamodb: {
      SequenceNumber: sequenceNumber,
      ApproximateCreationDateTime: 1_768_435_200,
      OldImage: {},
      NewImage: {},
    },
  };
}

/** The change of a record, with other fields. */
function change(fields: object): { readonly dynamodb: object } {
  return { dynamodb: { ...record("2").dynamodb, ...fields } };
}

it("passes the records of a batch on, in order", async () => {
  const world = new World();
  expect(await world.invoke({ Records: [record("2"), record("10")] })).toEqual({
    batchItemFailures: [],
  });
  expect(world.batches[0]!.map(({ sequenceNumber }) => sequenceNumber)).toEqual(["2", "10"]);
  expect(world.log).toEqual([]);
});

it("reports the records that failed, so that only these come again [W-25]", async () => {
  const world = new World();
  const error = Object.assign(new Error("no room"), { code: "ERR_LIMITER_ARCHIVE_FULL" });
  world.report = {
    failures: [
      { sequenceNumber: "2", error },
      { sequenceNumber: "10", error: "a text" },
    ],
  };
  expect(await world.invoke({ Records: [record("1"), record("2"), record("10")] })).toEqual({
    batchItemFailures: [{ itemIdentifier: "2" }, { itemIdentifier: "10" }],
  });
  expect(world.log).toEqual([
    { level: "ERROR", message: "no room", code: "ERR_LIMITER_ARCHIVE_FULL", sequenceNumber: "2" },
    { level: "ERROR", message: "a text", sequenceNumber: "10" },
  ]);
});

it("prints a bounded number of lines however many records failed, and reports all of them", async () => {
  const world = new World();
  world.report = {
    failures: Array.from({ length: 1000 }, (_, index) => ({
      sequenceNumber: String(index),
      error: undefined,
    })),
  };
  expect((await world.invoke({ Records: [] })).batchItemFailures).toHaveLength(1000);
  expect(world.log).toHaveLength(11);
  expect(world.log[10]).toEqual({ level: "ERROR", message: "990 more records failed" });
});

it("skips records that it cannot read, and says how many", async () => {
  const world = new World();
  await world.invoke({ Records: [{}, record("1"), { eventName: "MODIFY" }] });
  expect(world.batches[0]).toHaveLength(1);
  expect(world.log).toEqual([
    { level: "WARN", message: "2 records could not be read and were skipped" },
  ]);
});

it.each([
  ["null", null],
  ["of another kind", { ...record("2"), eventName: "constructor" }],
  ["without a number", { ...record("2"), ...change({ SequenceNumber: 2 }) }],
  ["without a time", { ...record("2"), ...change({ ApproximateCreationDateTime: undefined }) }],
  ["of a stream of keys", { ...record("2"), ...change({ OldImage: null, NewImage: null }) }],
])("is not stopped by a record that is wrong: %s", async (_, wrong) => {
  const world = new World();
  await world.invoke({ Records: [record("1"), wrong, record("3")] });
  expect(world.batches[0]!.map(({ sequenceNumber }) => sequenceNumber)).toEqual(["1", "3"]);
  expect(world.log).toEqual([
    { level: "WARN", message: "1 records could not be read and were skipped" },
  ]);
});

it.each(["aws.events", "aws.scheduler"])("writes a pulse by a schedule of %s", async (source) => {
  const world = new World();
  await world.invoke({ source, "detail-type": "Scheduled Event" });
  expect([world.pulses, world.batches, world.lines]).toEqual([1, [], []]);
});

it("leaves time to answer before Lambda ends the process", async () => {
  const world = new World();
  for (const leftMs of [60_000, 3_000])
    await world.invoke({ Records: [] }, { getRemainingTimeInMillis: () => leftMs });
  await world.invoke({ Records: [] });
  expect(world.limitsMs).toEqual([35_000, 1_500, undefined]);
});

it.each([null, {}, "text", { Records: "none" }])("throws on the event %j", async (event) => {
  await expect(new World().invoke(event)).rejects.toThrow("check what invokes this function");
});

it("prints one line of metrics for each batch, by table", async () => {
  const world = new World();
  world.report = {
    snapshotWrites: 3,
    archived: 4,
    dropped: 5,
    splits: 6,
    merges: 7,
    shards: 8,
    lagMs: 9000,
    skipped: 10,
    failures: [{ sequenceNumber: "1", error: new Error("no") }],
  };
  await world.invoke({ Records: [record("1"), record("2"), {}] });
  const metrics = world.lines
    .map((line) => JSON.parse(line) as object)
    .filter((line) => "_aws" in line);
  const counts = [
    "Records",
    "Failures",
    "Skipped",
    "SnapshotWrites",
    "Splits",
    "Merges",
    "Shards",
    "Archived",
    "Dropped",
  ];
  expect(metrics).toEqual([
    {
      _aws: {
        Timestamp: NOW_MS,
        CloudWatchMetrics: [
          {
            Namespace: "ZaeLimiter/Aggregator",
            Dimensions: [["TableName"]],
            Metrics: expect.arrayContaining([
              { Name: "Lag", Unit: "Milliseconds" },
              ...counts.map((Name) => ({ Name, Unit: "Count" })),
            ]) as unknown,
          },
        ],
      },
      TableName: "limits",
      Records: 2,
      Failures: 1,
      Skipped: 11,
      Lag: 9000,
      SnapshotWrites: 3,
      Splits: 6,
      Merges: 7,
      Shards: 8,
      Archived: 4,
      Dropped: 5,
    },
  ]);
});
