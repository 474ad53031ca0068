/*
 * Checks, plans, keeps clients out and runs the passes. upgrade-record.ts is the lease and the
 * position, table-pass.ts one way through the table, change.ts a write over what was read, and
 * python-*.ts say what becomes of each item of the Python zae-limiter.
 */
import { randomUUID } from "node:crypto";
import {
  IncompatibleSchemaError,
  ValidationError,
  VERSION,
  type UsageWindow,
  type VersionRecord,
} from "zae-limiter";
import { SCHEMA_VERSION, type TablePlace } from "zae-limiter/dynamodb";
import {
  absent,
  Aliases,
  assertCompatible,
  contention,
  isOlderVersion,
  judgeVersion,
  LOST_VERSION,
  readVersion,
  UPGRADING_VERSION,
  USAGE_WINDOWS,
  versionItem,
  withConnection,
  type Connection,
  type TransactItem,
} from "zae-limiter/dynamodb-internals";
import type { Migration, Pass } from "./migration.ts";
import { pythonLeftovers, pythonMigration } from "./python-migration.ts";
import { assertUsableTarget, forgetNamespaces } from "./table-state.ts";
import { runPass, type PassOptions } from "./table-pass.ts";
import { UpgradeRecord, type UpgradePosition } from "./upgrade-record.ts";
import { UpgradeTally, type UpgradeCount } from "./upgrade-tally.ts";

/** How far an upgrade is. */
export interface UpgradeProgress {
  /** The current step, such as "usage of days". */
  readonly step: string;
  /** Groups of items that were looked at so far. */
  readonly items: number;
}

/** Options of `upgradeTable`. */
export interface UpgradeOptions extends TablePlace {
  /**
   * The name of another stack, whose new and empty table gets the items; the old table stays as it
   * is. Without it, items are upgraded where they are.
   */
  readonly into?: string;
  /** Only reports what would be done, and writes nothing. @default false */
  readonly dryRun?: boolean;
  /** Goes on although something of the table cannot be enforced afterwards. @default false */
  readonly force?: boolean;
  /**
   * Which windows the aggregator of the Python zae-limiter counted (`SNAPSHOT_WINDOWS`).
   * @default hourly and daily, as there
   */
  readonly snapshotWindows?: readonly UsageWindow[];
  /** The version of the Lambda that was deployed for the new schema, if one was. */
  readonly lambdaVersion?: string;
  /**
   * Called after every hundred items.
   * @example await upgradeTable({ onProgress: ({ step, items }) => console.error(step, items) });
   */
  readonly onProgress?: (progress: UpgradeProgress) => void;
  /** Ends the upgrade after the items that are under way; it can be continued. */
  readonly signal?: AbortSignal;
}

/** The result of an upgrade, or of a dry run. */
export interface UpgradeReport {
  /** The version of the items before; undefined when the table has no version record. */
  readonly from: string | undefined;
  /** The version of the items afterwards. */
  readonly to: string;
  /** What each migration does; empty when the items are up to date. */
  readonly migrations: readonly string[];
  /** Groups of items by kind. */
  readonly counts: Readonly<Record<string, UpgradeCount>>;
  /** What cannot be enforced afterwards, in words. */
  readonly dropped: readonly string[];
  /** What stays in the table and is not used any more, in words. */
  readonly left: readonly string[];
  /** Whether nothing was written. */
  readonly dryRun: boolean;
}

const MIGRATIONS: readonly Migration[] = [pythonMigration];

/** What is done in a table that already has this schema. */
const LEFTOVERS =
  "Buckets that a process of the Python zae-limiter has written since the upgrade become ours.";

const DEFAULT_WINDOWS: readonly UsageWindow[] = ["hourly", "daily"];

/**
 * Brings the items of a table to the schema of this version, or copies them into a new one. It
 * continues where it was interrupted. Stop everything that writes to the table first: new processes
 * are kept out, running ones are not.
 * @example
 * const { counts, dropped } = await upgradeTable({ stack: "limits", dryRun: true });
 * if (dropped.length === 0) await upgradeTable({ stack: "limits" });
 */
export async function upgradeTable(options: UpgradeOptions = {}): Promise<UpgradeReport> {
  const { into, snapshotWindows = DEFAULT_WINDOWS } = options;
  const unknown = snapshotWindows.find((window) => !USAGE_WINDOWS.includes(window));
  if (unknown !== undefined)
    throw new ValidationError("snapshotWindows", unknown, "must be hourly, daily or monthly");
  return withConnection(options, async (source) => {
    if (into === undefined) return upgradeBetween(source, undefined, options);
    if (into === source.tableName)
      throw new ValidationError("into", into, "must be another stack than the one to upgrade");
    return withConnection({ ...options, stack: into }, async (target) =>
      upgradeBetween(source, target, options),
    );
  });
}

async function upgradeBetween(
  source: Connection,
  target: Connection | undefined,
  options: UpgradeOptions,
): Promise<UpgradeReport> {
  const record = await readVersion(source);
  const { dryRun = false, force = false } = options;
  const { state } = judgeVersion(record);
  if (state !== "upgrade needed") assertCompatible(record);
  const from = record?.schemaVersion;
  const pending = from === undefined ? [] : MIGRATIONS.filter(({ to }) => isOlderVersion(from, to));
  const upgrade = { source, target, options, migrations: pending };
  if (target !== undefined && from === UPGRADING_VERSION)
    throw new ValidationError(
      "into",
      target.tableName,
      "cannot be used: an upgrade in place was begun",
    );
  if (target !== undefined) await assertUsableTarget(target);
  const isUpToDate = pending.length === 0;
  const leftovers = target === undefined ? [pythonLeftovers] : [];
  const passes = isUpToDate ? leftovers : pending.flatMap((migration) => migration.passes);
  const plan = await sweepTable(upgrade, passes, "nothing");
  const descriptions = isUpToDate ? [LEFTOVERS] : pending.map(({ description }) => description);
  const report = (tally: UpgradeTally): UpgradeReport => ({
    from,
    to: SCHEMA_VERSION,
    migrations: isUpToDate && plan.total === 0 ? [] : descriptions,
    counts: tally.counts,
    dropped: plan.dropped,
    left: plan.left,
    dryRun,
  });
  if (dryRun || (isUpToDate && plan.total === 0)) return report(plan);
  if (plan.dropped.length > 0 && !force) throw buildUnsupportedError(plan.dropped, record!);
  // Clients are not kept out: they refuse these buckets anyway.
  if (isUpToDate) return report(await sweepTable(upgrade, passes, "in place"));
  return report(await run(upgrade, record!));
}

/** Goes through the whole table without a record of how far it is. */
async function sweepTable(
  upgrade: Upgrade,
  passes: readonly Pass[],
  write: PassOptions["write"],
): Promise<UpgradeTally> {
  const tally = new UpgradeTally();
  const onPage = async (): Promise<void> =>
    tell(upgrade.options, write === "nothing" ? "looking" : "upgrading", tally);
  for (const pass of passes)
    await runPass(pass, undefined, { ...passOptions(upgrade, tally), write, onPage });
  return tally;
}

interface Upgrade {
  readonly source: Connection;
  readonly target: Connection | undefined;
  readonly options: UpgradeOptions;
  readonly migrations: readonly Migration[];
}

/** Takes the lease, keeps clients out, changes the items, lets clients in. */
async function run(upgrade: Upgrade, record: VersionRecord): Promise<UpgradeTally> {
  const { source, target, options } = upgrade;
  const place = target ?? source;
  const { record: lease, position } = await UpgradeRecord.take(place, {
    owner: randomUUID(),
    source: target === undefined ? undefined : source.tableName,
  });
  try {
    const before = target === undefined ? record : (await readVersion(target))!;
    await keepOut(place, before, lease);
    // Before the first page only: afterwards they are those of the source.
    if (target !== undefined && !position?.to) await forgetNamespaces(target, lease);
    const tally = new UpgradeTally();
    for (const migration of upgrade.migrations)
      await migrate(migration, { ...upgrade, lease, tally, position });
    const lambdaVersion =
      options.lambdaVersion ?? (target === undefined ? undefined : before.lambdaVersion);
    const end = target === undefined ? lease.end() : lease.endCopy();
    await letIn(place, { ...before, lambdaVersion }, end);
    return tally;
  } catch (error) {
    await lease.release().catch(() => undefined);
    throw error;
  }
}

/** Runs the passes of one migration, from the position of an earlier run on. */
async function migrate(
  { to, passes }: Migration,
  upgrade: Upgrade & {
    readonly lease: UpgradeRecord;
    readonly tally: UpgradeTally;
    readonly position: UpgradePosition | undefined;
  },
): Promise<void> {
  const { target, options, lease, tally, position } = upgrade;
  let at = position?.to === to ? position : { to, pass: 0, cursor: undefined };
  for (const [number, pass] of passes.entries()) {
    if (number < at.pass) continue;
    await runPass(pass, at.cursor, {
      ...passOptions(upgrade, tally),
      write: target === undefined ? "in place" : { into: target },
      onPage: async (cursor) => {
        tell(options, pass.name, tally);
        await lease.moveTo({ to, pass: cursor === undefined ? number + 1 : number, cursor });
      },
    });
    at = { to, pass: number + 1, cursor: undefined };
  }
}

function passOptions(
  { source, options }: Upgrade,
  tally: UpgradeTally,
): Omit<PassOptions, "write" | "onPage"> {
  return {
    source,
    tally,
    signal: options.signal,
    context: {
      nowMs: Math.floor(source.clock.now()),
      countedWindows: options.snapshotWindows ?? DEFAULT_WINDOWS,
    },
  };
}

function tell({ onProgress }: UpgradeOptions, step: string, tally: UpgradeTally): void {
  onProgress?.({ step, items: tally.total });
}

/**
 * The minimum client version is lowered, not raised: release 0.10.3 of the Python zae-limiter
 * ignores a minimum that it does not meet, and does not look at the schema then (ADR 017).
 */
async function keepOut(
  connection: Connection,
  before: VersionRecord,
  lease: UpgradeRecord,
): Promise<void> {
  const put = putVersion(connection, { ...before, schemaVersion: UPGRADING_VERSION }, before);
  const { applied } = await connection.transact([put, lease.check()]);
  if (!applied) throw contention("an upgrade", connection.tableName);
}

/** The new version and the end of the upgrade are one transaction: there is nothing in between. */
async function letIn(
  connection: Connection,
  before: VersionRecord,
  end: TransactItem,
): Promise<void> {
  const upgrading = { ...before, schemaVersion: UPGRADING_VERSION };
  const put = putVersion(connection, { ...before, schemaVersion: SCHEMA_VERSION }, upgrading);
  const { applied } = await connection.transact([put, end]);
  if (!applied) throw contention("an upgrade", connection.tableName);
}

function putVersion(
  { clock }: Connection,
  record: VersionRecord,
  { schemaVersion }: VersionRecord,
): TransactItem {
  const alias = new Aliases();
  const condition =
    schemaVersion === LOST_VERSION.schemaVersion
      ? absent(alias)
      : `${alias.name("schema_version")} = ${alias.value(schemaVersion)}`;
  const Item = versionItem({
    ...record,
    clientMinVersion: "0.0.0",
    updatedAt: new Date(clock.now()),
    updatedBy: `upgrade:${VERSION}`,
  });
  return { Put: { Item, ConditionExpression: condition, ...alias.fields() } };
}

function buildUnsupportedError(
  dropped: readonly string[],
  record: VersionRecord,
): IncompatibleSchemaError {
  const shown = dropped.slice(0, 5).join("; ");
  const more = dropped.length > 5 ? `; and ${dropped.length - 5} more` : "";
  return new IncompatibleSchemaError(
    `The table has what this version of zae-limiter does not support: ${shown}${more}. ` +
      "Nothing was changed. To upgrade without these, pass force (--force).",
    { ...record, clientVersion: VERSION },
  );
}
