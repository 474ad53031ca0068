import { accessSync, constants, statSync, type Stats } from "node:fs";
import { dirname, resolve } from "node:path";
import {
  InfrastructureNotFoundError,
  PermissionDenied,
  ValidationError,
} from "../../core/errors.ts";
import { namespaceName } from "../../core/identifiers.ts";
import { DEFAULT_NAMESPACE, newNamespaceId, NO_NAMESPACE } from "../../core/namespace.ts";
import { StoreRepository, type Scope } from "../management/store-repository.ts";
import type { RepositoryOptions } from "../repository.ts";
import { checkOptions, optionNames } from "../../core/options.ts";
import { buildConstructorError, recordsUsage, REPOSITORY_OPTIONS } from "../repository-options.ts";
import { monotonicMs, systemClock, systemRandom, wholeMs } from "../system-clock.ts";
import { Connection } from "./database/connection.ts";
import { openDatabase, type OpenedDatabase, type SqliteDatabase } from "./database/driver.ts";
import { translateError } from "./database/driver-errors.ts";
import { isCurrent, migrate, SCHEMA_VERSION } from "./database/schema.ts";
import { SqliteStore } from "./sqlite-store.ts";
import { Transactions } from "./transactions/transactions.ts";

/** Options of a SQLite repository. */
export interface SqliteOptions extends RepositoryOptions {
  /**
   * An open connection to the file. By default, one is opened with the first driver found. The
   * caller has to close its own connection.
   */
  readonly database?: SqliteDatabase;
  /**
   * How long a call waits for other processes that hold the lock before it throws
   * `RateLimiterUnavailable`. @default 5000
   */
  readonly lockTimeoutMs?: number;
  /**
   * What a completed call survives: a crash of the process, or also a power failure, which costs
   * one disk flush for each transaction. @default "process"
   */
  readonly durability?: "process" | "power";
}

/**
 * Limits, balances, usage and audit events in one SQLite file, which several processes on one
 * machine may share.
 *
 * @example
 * const repository = await SqliteRepository.open("limits.db");
 * const limiter = new RateLimiter({ repository });
 */
export class SqliteRepository extends StoreRepository {
  /** What opened the file: "node:sqlite", the name of a package, or "options.database". */
  readonly driver: string;
  /** The version of the file's schema, which opening has brought up to date. */
  readonly schemaVersion: number;

  private constructor(scope: Scope, driver: string) {
    if (scope?.store === undefined)
      throw buildConstructorError("SqliteRepository", "await SqliteRepository.open(path)");
    super(scope);
    this.driver = driver;
    this.schemaVersion = SCHEMA_VERSION;
  }

  /**
   * Opens the file, and creates it if it does not exist. Its folder must exist. `:memory:` opens a
   * private database without a file.
   * @example
   * const repository = await SqliteRepository.open("limits.db", { namespace: "tenant-a" });
   */
  static async open(path: string, options: SqliteOptions = {}): Promise<SqliteRepository> {
    checkOptions(options, OPTION_NAMES, "SqliteRepository.open");
    const name = namespaceName(options.namespace ?? DEFAULT_NAMESPACE);
    const clock = options.clock ?? systemClock;
    const random = options.random ?? systemRandom;
    const nowMs = (): number => wholeMs(clock);
    if (options.create === false && options.database === undefined) assertExists(checkPath(path));
    const { durability, lockTimeoutMs } = toSettings(options);
    const recordUsage = recordsUsage(options);
    const { database, driver } =
      options.database === undefined
        ? openFile(checkPath(path))
        : { database: options.database, driver: "options.database" };
    const connection = new Connection(database);
    const release = (): void => (options.database === undefined ? connection.close() : undefined);
    try {
      const transactions = new Transactions({
        connection,
        path,
        lockTimeoutMs,
        random,
        assertInPlace: buildInPlaceCheck(findFile(connection)),
      });
      await prepare(connection, transactions, { path, durability });
      const store = new SqliteStore({ connection, transactions, nowMs, recordUsage, release });
      const register = (): Promise<{ readonly namespaceId: string }> =>
        store.namespaces.register(name, () => newNamespaceId(random), nowMs());
      const found =
        options.create === false ? await store.namespaces.byName(name) : await register();
      const namespaceId = found?.namespaceId ?? NO_NAMESPACE;
      return new SqliteRepository({ store, namespaceName: name, namespaceId, options }, driver);
    } catch (error) {
      release();
      throw error;
    }
  }
}

const OPTION_NAMES = optionNames<SqliteOptions>({
  ...REPOSITORY_OPTIONS,
  database: true,
  lockTimeoutMs: true,
  durability: true,
});

const DEFAULT_LOCK_TIMEOUT_MS = 5000;

/** Not a file, but the private memory of one connection. */
const IN_MEMORY = ":memory:";

/**
 * The WAL is truncated to this size after a checkpoint: twice what it holds between two checkpoints
 * of 1000 pages.
 */
const WAL_SIZE_LIMIT_BYTES = 8 * 1024 * 1024;

/**
 * Sets up the connection and migrates the file to the newest schema. This is the first access to
 * the file: it may be locked, or not be a database at all.
 */
async function prepare(
  connection: Connection,
  transactions: Transactions,
  { path, durability }: { readonly path: string; readonly durability: "process" | "power" },
): Promise<void> {
  connection.exec("PRAGMA busy_timeout = 0");
  const current = await transactions.read(() => isCurrent(connection, path));
  const mode = await transactions.read(
    () => connection.row("PRAGMA journal_mode = WAL")?.["journal_mode"],
  );
  if (mode !== "wal" && findFile(connection) !== "")
    throw new ValidationError(
      "path",
      path,
      `the file system does not support SQLite's WAL mode (it stays in mode ${mode})`,
    );
  connection.exec(`PRAGMA synchronous = ${durability === "power" ? "FULL" : "NORMAL"}`);
  connection.row(`PRAGMA journal_size_limit = ${WAL_SIZE_LIMIT_BYTES}`);
  if (!current) await transactions.alone(() => migrate(connection, path));
}

function checkPath(path: unknown): string {
  if (typeof path !== "string" || path === "")
    throw new ValidationError("path", path, "must be the path of a file");
  if (path === IN_MEMORY) return path;
  const file = resolve(path);
  const folder = dirname(file);
  if (!statAt(folder)?.isDirectory())
    throw new InfrastructureNotFoundError(
      `The folder ${folder} of the database does not exist. Create it first.`,
    );
  const found = statAt(file);
  if (found?.isDirectory()) throw new ValidationError("path", path, "is a folder, not a file");
  // SQLite treats a file of one byte as empty and would overwrite it.
  if (found?.size === 1)
    throw new ValidationError(
      "path",
      path,
      "the file is not a SQLite database; choose another path",
    );
  // The WAL is in the same folder, so the folder has to be writable too. SQLite's own message would
  // only say that it cannot open a file.
  for (const place of found === undefined ? [folder] : [folder, file]) checkWritable(place);
  return file;
}

/**
 * What is at a path, or undefined. Some paths cannot exist, because they are too long or contain a
 * NUL; those throw.
 */
function statAt(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "EACCES" || code === "EPERM")
      throw new PermissionDenied(`${path} cannot be read. Check its permissions.`, {
        cause: error,
      });
    throw new ValidationError("path", path, message);
  }
}

/** An empty file counts as missing: SQLite creates one before the first table. */
function assertExists(file: string): void {
  if (file === IN_MEMORY || (statSync(file, { throwIfNoEntry: false })?.size ?? 0) > 0) return;
  throw new InfrastructureNotFoundError(
    `The database ${file} does not exist. Check the path. To create it: ` +
      `zae-limiter --repository "sqlite:${file}" system set-defaults rpm:100`,
  );
}

function checkWritable(place: string): void {
  try {
    accessSync(place, constants.R_OK | constants.W_OK);
  } catch (cause) {
    throw new PermissionDenied(
      `${place} cannot be written. Check its permissions and those of its file system.`,
      { cause },
    );
  }
}

function toSettings({
  durability = "process",
  lockTimeoutMs = DEFAULT_LOCK_TIMEOUT_MS,
}: SqliteOptions): {
  readonly durability: "process" | "power";
  readonly lockTimeoutMs: number;
} {
  if (durability !== "process" && durability !== "power")
    throw new ValidationError("durability", durability, "must be 'process' or 'power'");
  if (typeof lockTimeoutMs !== "number" || !Number.isFinite(lockTimeoutMs) || lockTimeoutMs < 0)
    throw new ValidationError("lockTimeoutMs", lockTimeoutMs, "must be 0 or more milliseconds");
  return { durability, lockTimeoutMs };
}

/** How often the path is checked: a check takes 3 µs, a tenth of a transaction. */
const CHECK_EVERY_MS = 10;

/**
 * Returns a check that the path still leads to the opened file. SQLite silently keeps writing to a
 * deleted file, and everything would be lost when the process ends.
 */
function buildInPlaceCheck(file: string): () => void {
  if (file === "") return () => {};
  let opened: { readonly ino: number; readonly dev: number } | undefined;
  let nextCheckMs = 0;
  return () => {
    const nowMs = monotonicMs();
    if (nowMs < nextCheckMs) return;
    const found = statSync(file, { throwIfNoEntry: false });
    opened ??= found;
    if (found === undefined || found.ino !== opened?.ino || found.dev !== opened.dev)
      throw new InfrastructureNotFoundError(
        `The database ${file} was deleted or replaced while it was open. What was written since then is lost. Open the repository again.`,
      );
    nextCheckMs = nowMs + CHECK_EVERY_MS;
  };
}

/** The file of a connection; empty for a database in memory. */
function findFile(connection: Connection): string {
  return String(
    connection.rows("PRAGMA database_list").find((row) => row["name"] === "main")?.["file"] ?? "",
  );
}

function openFile(path: string): OpenedDatabase {
  try {
    return openDatabase(path);
  } catch (error) {
    throw translateError(error, path) ?? error;
  }
}
