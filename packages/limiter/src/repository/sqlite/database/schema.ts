import { IncompatibleSchemaError, ValidationError } from "../../../core/errors.ts";
import { VERSION } from "../../../core/version.ts";
import type { Connection } from "./connection.ts";

/** "zael" marks our files, so that no tables are created in databases of other programs. */
const APPLICATION_ID = 0x7a_61_65_6c;

/**
 * Each entry migrates a file from the `user_version` that is its index to the next one. Never edit
 * a released entry; add another one.
 *
 * One row holds a whole bucket with all limits and the current hour of usage, because a decision
 * reads and writes all of it. Balances are JSON: node:sqlite refuses to read an INTEGER beyond
 * 2^53, while JSON numbers are the same as JavaScript's.
 */
const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE namespaces (
    namespace_id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    status TEXT NOT NULL,
    created_at_ms INTEGER NOT NULL,
    deleted_at_ms INTEGER,
    -- Grows with every change of limits, so that other processes notice it in their next transaction.
    config_version INTEGER NOT NULL DEFAULT 0
  ) WITHOUT ROWID;
  CREATE UNIQUE INDEX namespaces_active ON namespaces (name) WHERE status = 'active';

  CREATE TABLE entities (
    namespace_id TEXT NOT NULL,
    entity_id TEXT NOT NULL,
    name TEXT NOT NULL,
    parent_id TEXT,
    cascades INTEGER NOT NULL,
    metadata TEXT NOT NULL,
    created_at_ms INTEGER NOT NULL,
    PRIMARY KEY (namespace_id, entity_id)
  ) WITHOUT ROWID;
  CREATE INDEX entities_parent ON entities (namespace_id, parent_id, entity_id) WHERE parent_id IS NOT NULL;

  -- entity_id '' holds a resource's defaults; resource '' the system's.
  CREATE TABLE limits (
    namespace_id TEXT NOT NULL,
    resource TEXT NOT NULL,
    entity_id TEXT NOT NULL,
    limits TEXT,
    settings TEXT,
    PRIMARY KEY (namespace_id, resource, entity_id)
  ) WITHOUT ROWID;
  CREATE INDEX limits_entity ON limits (namespace_id, entity_id);

  -- Ids are never used again: a lease of a bucket that was deleted finds nothing, also when a new one has its place.
  CREATE TABLE buckets (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    namespace_id TEXT NOT NULL,
    entity_id TEXT NOT NULL,
    resource TEXT NOT NULL,
    limits TEXT NOT NULL,
    balances TEXT NOT NULL,
    refilled_at_ms INTEGER NOT NULL,
    -- The hour that is being counted, as JSON: hourMs, requests, counters. Earlier hours are in the table usage.
    hour TEXT,
    UNIQUE (namespace_id, entity_id, resource)
  );
  CREATE INDEX buckets_resource ON buckets (namespace_id, resource, entity_id);

  CREATE TABLE usage (
    namespace_id TEXT NOT NULL,
    entity_id TEXT NOT NULL,
    resource TEXT NOT NULL,
    hour_ms INTEGER NOT NULL,
    requests INTEGER NOT NULL,
    counters TEXT NOT NULL,
    -- How much of it came by cascade.
    cascaded_requests INTEGER NOT NULL,
    cascaded_counters TEXT NOT NULL,
    PRIMARY KEY (namespace_id, entity_id, resource, hour_ms)
  ) WITHOUT ROWID;
  CREATE INDEX usage_hour ON usage (namespace_id, hour_ms);

  CREATE TABLE audit (
    namespace_id TEXT NOT NULL,
    entity_id TEXT NOT NULL,
    event_id TEXT NOT NULL,
    time_ms INTEGER NOT NULL,
    action TEXT NOT NULL,
    principal TEXT,
    resource TEXT,
    details TEXT NOT NULL,
    PRIMARY KEY (namespace_id, entity_id, event_id)
  ) WITHOUT ROWID;
  CREATE INDEX audit_time ON audit (namespace_id, time_ms);

  -- With row ids: without them, SQLite reads the whole row to find the revision, which every guarded
  -- write needs, and a state of declared limits may have megabytes.
  CREATE TABLE provisioner (namespace_id TEXT PRIMARY KEY, revision INTEGER NOT NULL, state TEXT NOT NULL);
  CREATE TABLE versions (only_one INTEGER PRIMARY KEY CHECK (only_one = 1), record TEXT NOT NULL);
  `,
];

/** The version of the newest schema. */
export const SCHEMA_VERSION = MIGRATIONS.length;

/** Whether the file has the newest schema. Throws if its schema is newer, or of another program. */
export function isCurrent(connection: Connection, path: string): boolean {
  const version = pragma(connection, "user_version");
  if (pragma(connection, "application_id") !== APPLICATION_ID) {
    const tables = connection.row("SELECT COUNT(*) AS count FROM sqlite_schema")!["count"];
    if (version !== 0 || tables !== 0)
      throw new ValidationError(
        "path",
        path,
        "the file is a SQLite database of another application; choose another path",
      );
    return false;
  }
  if (version > MIGRATIONS.length) {
    throw new IncompatibleSchemaError(
      `The database ${path} has schema ${version}, but this version of zae-limiter supports only schemas up to ${MIGRATIONS.length}. Update zae-limiter.`,
      { clientVersion: VERSION, schemaVersion: String(version) },
    );
  }
  return version === MIGRATIONS.length;
}

/**
 * Migrates the file to the newest schema, inside a transaction. It checks the schema again, because
 * another process may have migrated the file meanwhile.
 */
export function migrate(connection: Connection, path: string): void {
  if (isCurrent(connection, path)) return;
  for (const migration of MIGRATIONS.slice(pragma(connection, "user_version")))
    connection.exec(migration);
  connection.exec(`PRAGMA application_id = ${APPLICATION_ID}`);
  connection.exec(`PRAGMA user_version = ${MIGRATIONS.length}`);
}

function pragma(connection: Connection, name: "user_version" | "application_id"): number {
  return Number(connection.row(`PRAGMA ${name}`)?.[name]);
}
