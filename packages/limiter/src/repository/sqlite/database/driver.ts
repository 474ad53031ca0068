import { createRequire } from "node:module";
import { InfrastructureNotFoundError } from "../../../core/errors.ts";

/**
 * The part of a connection that is used: node:sqlite's `DatabaseSync`, better-sqlite3's and
 * libsql's `Database` have it.
 */
export interface SqliteDatabase {
  exec(sql: string): unknown;
  prepare(sql: string): SqliteStatement;
  close(): unknown;
}

/** The part of a prepared statement that is used. */
export interface SqliteStatement {
  run(...values: never[]): unknown;
  get(...values: never[]): unknown;
  all(...values: never[]): unknown[];
}

type Open = (path: string) => SqliteDatabase;

/** Packages of better-sqlite3's shape, in order of preference. */
const PACKAGES = ["better-sqlite3", "libsql"];

/**
 * Opens a file with the first driver that is there: the one built into Node, or a package that the
 * user installed.
 */
export function openDatabase(path: string): SqliteDatabase {
  const open = builtIn() ?? installed();
  if (open !== undefined) return open(path);
  throw new InfrastructureNotFoundError(
    `No SQLite driver was found. Use Node 22.13 or newer, which has one built in, or install one: npm install ${PACKAGES.join(
      " (or ",
    )}). A database can also be passed in as options.database.`,
  );
}

/** Node's own driver. Versions without it answer undefined. */
function builtIn(): Open | undefined {
  const loaded = withoutExperimentalWarning(() => process.getBuiltinModule("node:sqlite")) as
    | NodeSqlite
    | undefined;
  return loaded === undefined ? undefined : (path) => new loaded.DatabaseSync(path);
}

function installed(): Open | undefined {
  for (const name of PACKAGES) {
    const Database = requireIfInstalled(name);
    if (Database !== undefined) return (path) => new Database(path);
  }
  return undefined;
}

/** The types of the oldest supported Node do not know the module. */
interface NodeSqlite {
  readonly DatabaseSync: new (path: string) => SqliteDatabase;
}

type DatabaseClass = new (path: string) => SqliteDatabase;

/**
 * Both packages are CommonJS, and a bundler that sees an `import` of a package that is not there
 * fails or puts a stub in its place.
 */
function requireIfInstalled(name: string): DatabaseClass | undefined {
  try {
    return createRequire(import.meta.url)(name) as DatabaseClass;
  } catch (error) {
    // Only "it is not there" sends us to the next one; a driver that is installed and broken has to
    // say so.
    const { code, message } = error as { readonly code?: string; readonly message?: string };
    if (code === "MODULE_NOT_FOUND" && message?.includes(`'${name}'`)) return undefined;
    throw error;
  }
}

/**
 * Loading node:sqlite prints an ExperimentalWarning on some versions, once per process, for a
 * choice that the user did not make. The module is loaded synchronously, so nobody else's warning
 * can be lost while ours is held back.
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
