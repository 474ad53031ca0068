/*
 * The life of a stream record. Lambda or the runner (runner/) passes records in batches; all of one
 * item come in order, and a batch may come again, whole or in part.
 *
 *   change   usage/usage-change.ts compares the images: the growth of the totals was consumed
 *   sum      usage/usage-sums.ts files changes under the windows of the record's own time
 *   write    usage/usage-counter.ts adds each sum to its snapshot in one guarded write
 *   report   records of sums that could not be written are failures, and come again; after a batch
 *            without any, heartbeat.ts stores the time of its newest record
 *
 * Beside that, shards/ merges calm buckets, and archive/ keeps expired audit events.
 */
import { ValidationError } from "../../../core/errors.ts";
import { checkOptions, optionNames } from "../../../core/options.ts";
import { DEFAULT_RETENTION_DAYS, USAGE_WINDOWS, type UsageWindow } from "../../../core/usage.ts";
import { Expiring } from "../cache/expiring.ts";
import { resolveRetention, type RetentionDays } from "../cache/retention.ts";
import { parseSettings } from "../items/config-item.ts";
import { configKey } from "../items/keys.ts";
import { openConnection } from "../opening/open-connection.ts";
import type { DynamoOptions } from "../opening/options.ts";
import type { Connection } from "../table/connection.ts";
import { ItemReader } from "../table/item-reader.ts";
import type { AuditArchive } from "./archive/archive.ts";
import { AuditArchiver } from "./archive/audit-archiver.ts";
import { Heartbeat } from "./heartbeat.ts";
import { limitTime, type RecordFailure } from "./part.ts";
import { CalmMerger } from "./shards/calm-merger.ts";
import type { StreamRecord } from "./stream-record.ts";
import { UsageCounter } from "./usage/usage-counter.ts";

/** How an aggregator is opened. */
export interface AggregatorOptions extends Pick<
  DynamoOptions,
  | "stack"
  | "region"
  | "endpointUrl"
  | "client"
  | "transport"
  | "clock"
  | "random"
  | "requestTimeoutMs"
  | "maxAttempts"
  | "bucketTtlMultiplier"
> {
  /** The windows that usage is summed into. @default all three */
  readonly windows?: readonly UsageWindow[];
  /**
   * Where audit events go when they expire. @default nowhere: they are gone
   */
  readonly archive?: AuditArchive;
  /** For how many days usage is kept in namespaces that store no number of days. @default 90 */
  readonly usageRetentionDays?: number;
}

/** What an aggregator did. */
export interface AggregatorCounts {
  /** Records of the stream that were processed. */
  readonly records: number;
  /** Records that changed what a bucket has consumed. */
  readonly counted: number;
  /** Records of buckets that cannot be read, and never will be; what they consumed is missing. */
  readonly skipped: number;
  /** Successful writes of usage snapshots. */
  readonly snapshotWrites: number;
  /** Expired audit events that went into the archive. */
  readonly archived: number;
  /** Audit events that expired while there was no archive. */
  readonly dropped: number;
  /** Splits of shards that the records show, by any process. */
  readonly splits: number;
  /** Merges of shards that the records show, by any process. */
  readonly merges: number;
}

/** What became of a batch of stream records. */
export interface BatchReport extends AggregatorCounts {
  /** The largest number of shards that a bucket of this batch has; 0 when it has no bucket. */
  readonly shards: number;
  /** How long ago the oldest record of the batch was written; 0 when it is empty. */
  readonly lagMs: number;
  /** Records that must be delivered again, in the order of the batch. */
  readonly failures: readonly RecordFailure[];
}

/** How a batch is processed. */
export interface ProcessOptions {
  /**
   * For how long records of the batch may be started. Those not started by then are among the
   * failures. Those started may take some seconds more, if the table or the archive is slow.
   * @default no limit
   */
  readonly withinMs?: number;
}

/** Processes the records of a table's stream. */
export interface Aggregator {
  /**
   * Processes a batch, whose records are in the order of the stream. Records that failed must be
   * delivered again, with all that came after them or without: what was counted is not counted
   * twice.
   * @example const { failures } = await aggregator.process(records);
   */
  process(records: readonly StreamRecord[], options?: ProcessOptions): Promise<BatchReport>;
  /**
   * Writes a pulse, which comes back through the stream and shows that all before it was counted.
   * @example setInterval(() => void aggregator.pulse(), 60_000);
   */
  pulse(): Promise<void>;
  /**
   * Closes its connections.
   * @example aggregator.close();
   */
  close(): void;
}

/**
 * Opens an aggregator for the table of a stack.
 *
 * @example
 * const aggregator = await openAggregator({ stack: "limits", region: "eu-west-1" });
 */
export async function openAggregator(options: AggregatorOptions = {}): Promise<Aggregator> {
  checkOptions(options, OPTION_NAMES, "openAggregator");
  return (await openParts(options)).aggregator;
}

/** The same, with the connection that the aggregator closes; options have known names. */
export async function openParts(
  options: AggregatorOptions,
): Promise<{ readonly aggregator: StreamAggregator; readonly connection: Connection }> {
  const {
    windows = USAGE_WINDOWS,
    archive,
    usageRetentionDays = DEFAULT_RETENTION_DAYS,
    ...place
  } = options;
  const checked = {
    windows: checkWindows(windows),
    archive: checkArchive(archive),
    retentionDays: checkDays(usageRetentionDays),
  };
  const { connection, resolved } = await openConnection(undefined, {
    ...place,
    provisioning: "never",
  });
  return {
    aggregator: new StreamAggregator({
      connection,
      ...checked,
      ttlMultiplier: resolved.bucketTtlMultiplier,
    }),
    connection,
  };
}

/** The options of an aggregator, for whatever has more. */
export const AGGREGATOR_OPTIONS: Readonly<Record<keyof AggregatorOptions, true>> = {
  stack: true,
  region: true,
  endpointUrl: true,
  client: true,
  transport: true,
  clock: true,
  random: true,
  requestTimeoutMs: true,
  maxAttempts: true,
  bucketTtlMultiplier: true,
  windows: true,
  archive: true,
  usageRetentionDays: true,
};

const OPTION_NAMES = optionNames<AggregatorOptions>(AGGREGATOR_OPTIONS);

/** Each of them once. */
function checkWindows(windows: readonly UsageWindow[]): readonly UsageWindow[] {
  const known = new Set<unknown>(USAGE_WINDOWS);
  if (
    !Array.isArray(windows) ||
    windows.length === 0 ||
    !windows.every((window) => known.has(window))
  )
    throw new ValidationError(
      "windows",
      windows,
      `must be a list of at least one of ${USAGE_WINDOWS.join(", ")}`,
    );
  return USAGE_WINDOWS.filter((window) => windows.includes(window));
}

function checkDays(days: number): number {
  if (Number.isSafeInteger(days) && days >= 1) return days;
  throw new ValidationError("usageRetentionDays", days, "must be a whole number of at least 1");
}

function checkArchive(archive: AuditArchive | undefined): AuditArchive | undefined {
  if (
    archive !== undefined &&
    typeof (archive as Partial<AuditArchive> | null)?.store !== "function"
  )
    throw new ValidationError("archive", archive, "must have a function store");
  return archive;
}

/** How long the retention of a namespace is remembered. */
const RETENTION_TTL_MS = 60_000;

/** The parts of an aggregator, over one connection. */
export class StreamAggregator implements Aggregator {
  readonly #connection: Connection;
  readonly #usage: UsageCounter;
  readonly #shards: CalmMerger;
  readonly #archiver: AuditArchiver;
  readonly heartbeat: Heartbeat;

  constructor(options: {
    readonly connection: Connection;
    readonly windows: readonly UsageWindow[];
    readonly archive: AuditArchive | undefined;
    /** Where a namespace stores none. @default 90 */
    readonly retentionDays?: number;
    readonly ttlMultiplier: number;
  }) {
    const { connection, retentionDays } = options;
    this.#connection = connection;
    this.#usage = new UsageCounter({
      ...options,
      retention: retentions(connection, retentionDays),
    });
    this.#shards = new CalmMerger(options);
    this.#archiver = new AuditArchiver(options);
    this.heartbeat = new Heartbeat(connection);
  }

  async process(records: readonly StreamRecord[], options?: ProcessOptions): Promise<BatchReport> {
    const report = await this.processWithoutHeartbeat(records, options);
    if (report.failures.length === 0) await this.heartbeat.note(records);
    return report;
  }

  /** Processes a batch for a runner, which knows better until when everything is counted. */
  async processWithoutHeartbeat(
    records: readonly StreamRecord[],
    { withinMs = Infinity }: ProcessOptions = {},
  ): Promise<BatchReport> {
    const checkTime = limitTime(withinMs, this.#connection.clock);
    const [usage, shards, archive] = await Promise.all([
      this.#usage.count(records, checkTime),
      this.#shards.look(records, checkTime),
      this.#archiver.archive(records, checkTime),
    ]);
    const failures = inOrder(records, [...usage.failures, ...archive.failures]);
    const oldestMs = records.reduce((oldest, { atMs }) => Math.min(oldest, atMs), Infinity);
    return {
      records: records.length,
      counted: usage.counted,
      skipped: usage.skipped,
      snapshotWrites: usage.snapshotWrites,
      archived: archive.archived,
      dropped: archive.dropped,
      splits: shards.splits,
      merges: shards.merges,
      shards: shards.shards,
      lagMs: records.length === 0 ? 0 : Math.max(0, this.#connection.clock.now() - oldestMs),
      failures,
    };
  }

  pulse(): Promise<void> {
    return this.heartbeat.pulse();
  }

  close(): void {
    this.#connection.close();
  }
}

/** One failure for each record that has any, in the order of the batch. */
function inOrder(
  records: readonly StreamRecord[],
  failures: readonly RecordFailure[],
): readonly RecordFailure[] {
  if (failures.length === 0) return failures;
  const byNumber = new Map(failures.map((failure) => [failure.sequenceNumber, failure]));
  return records.flatMap(({ sequenceNumber }) => byNumber.get(sequenceNumber) ?? []);
}

/**
 * The retention of each namespace, by its id. The limits beside it are not read: one of a kind that
 * only a newer release knows would fail every record of the namespace, and hold up all others.
 */
function retentions(connection: Connection, usageDays?: number): Expiring<RetentionDays> {
  const reader = new ItemReader(connection);
  return new Expiring({
    read: async (namespaceId) => {
      const item = await reader.get(configKey(namespaceId, { level: "system" }));
      return resolveRetention(item && parseSettings(item), usageDays);
    },
    clock: connection.clock,
    ttlMs: RETENTION_TTL_MS,
  });
}
