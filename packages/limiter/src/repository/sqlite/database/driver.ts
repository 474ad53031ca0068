import { createRequire } from "node:module";
import { InfrastructureError } from "../../../core/errors.ts";

/**
 * The part of a connection that this library uses. `DatabaseSync` of node:sqlite has it, and so has
 * `Database` of better-sqlite3 and libsql.
 */
export interface SqliteDatabase {
  /**
   * Runs statements that return nothing.
   * @example database.exec("PRAGMA busy_timeout = 0");
   */
  exec(sql: string): unknown;
  /**
   * Compiles a statement that is run many times.
   * @example const statement = database.prepare("SELECT name FROM namespaces WHERE id = ?");
   */
  prepare(sql: string): SqliteStatement;
  /**
   * Closes the file.
   * @example database.close();
   */
  close(): unknown;
}

/** The part of a prepared statement that this library uses. */
export interface SqliteStatement {
  /**
   * Runs it, and returns what the driver counts.
   * @example statement.run();
   */
  run(...values: never[]): unknown;
  /**
   * Returns the first row; undefined if there is none.
   * @example const row = statement.get();
   */
  get(...values: never[]): unknown;
  /**
   * Returns all rows.
   * @example const rows = statement.all();
   */
  all(...values: never[]): unknown[];
}

/** A way to open files: the driver built into Node, or an installed package. */
interface Driver {
  readonly name: string;
  readonly open: (path: string) => SqliteDatabase;
}

/** An open connection, and the name of the driver that opened it. */
export interface OpenedDatabase {
  readonly database: SqliteDatabase;
  readonly driver: string;
}

const BUILT_IN = "node:sqlite";
/** Packages with the interface of better-sqlite3, in order of preference. */
const PACKAGES = ["better-sqlite3", "libsql"];

/** Opens a file with the driver built into Node, or else with an installed package. */
export function openDatabase(path: string): OpenedDatabase {
  const driver = findBuiltIn() ?? findInstalled();
  if (driver === undefined) throw buildMissingDriverError();
  try {
    return { database: driver.open(path), driver: driver.name };
  } catch (error) {
    // Cloudflare Workers have the module, but its classes cannot be constructed.
    const isStub = error instanceof TypeError && error.message === "Illegal constructor";
    throw isStub ? buildMissingDriverError(error) : error;
  }
}

function buildMissingDriverError(cause?: unknown): InfrastructureError {
  return new InfrastructureError(
    "ERR_LIMITER_DRIVER_MISSING",
    `No SQLite driver was found. Use Node 22.13 or newer, which has one built in, or install one: npm install ${PACKAGES.join(
      " (or ",
    )}).`,
    { cause },
  );
}

/** Node's own driver; undefined in versions of Node that do not have one. */
function findBuiltIn(): Driver | undefined {
  const loaded = withoutExperimentalWarning(() => process.getBuiltinModule(BUILT_IN)) as
    | NodeSqlite
    | undefined;
  if (loaded === undefined) return undefined;
  return { name: BUILT_IN, open: (path) => new loaded.DatabaseSync(path) };
}

function findInstalled(): Driver | undefined {
  for (const name of PACKAGES) {
    const Database = requireIfInstalled(name);
    if (Database !== undefined) return { name, open: (path) => new Database(path) };
  }
  return undefined;
}

/** Declared here, because the types of the oldest supported Node lack the module. */
interface NodeSqlite {
  readonly DatabaseSync: new (path: string) => SqliteDatabase;
}

type DatabaseClass = new (path: string) => SqliteDatabase;

/**
 * Loads a package with `require`: both are CommonJS, and bundlers fail on an `import` of a package
 * that is not installed, or replace it with a stub.
 */
function requireIfInstalled(name: string): DatabaseClass | undefined {
  try {
    return createRequire(import.meta.url)(name) as DatabaseClass;
  } catch (error) {
    // Only a missing package leads to the next one. If an installed driver is broken, its error
    // must be seen.
    const { code, message } = error as { readonly code?: string; readonly message?: string };
    if (code === "MODULE_NOT_FOUND" && message?.includes(`'${name}'`)) return undefined;
    throw error;
  }
}

/**
 * Suppresses the ExperimentalWarning that some versions of Node print when node:sqlite is loaded,
 * because the user did not choose that module. Loading is synchronous, so no other warning can be
 * lost meanwhile.
 */
function withoutExperimentalWarning<T>(load: () => T): T {
  const original = process.emitWarning.bind(process);
  const held = Object.getOwnPropertyDescriptor(process, "emitWarning")!;
  process.emitWarning = (warning: string | Error, ...rest: unknown[]): void => {
    if (rest[0] !== "ExperimentalWarning") Reflect.apply(original, undefined, [warning, ...rest]);
  };
  try {
    return load();
  } finally {
    Object.defineProperty(process, "emitWarning", held);
  }
}
