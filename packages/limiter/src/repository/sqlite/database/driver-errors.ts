import {
  InfrastructureNotFoundError,
  PermissionDenied,
  RateLimiterUnavailable,
  ValidationError,
  type ZaeLimiterError,
} from "../../../core/errors.ts";

/** The primary result codes of SQLite that are translated, by their names. */
const CODES = {
  SQLITE_PERM: 3,
  SQLITE_BUSY: 5,
  SQLITE_LOCKED: 6,
  SQLITE_READONLY: 8,
  SQLITE_IOERR: 10,
  SQLITE_CORRUPT: 11,
  SQLITE_FULL: 13,
  SQLITE_CANTOPEN: 14,
  SQLITE_PROTOCOL: 15,
  SQLITE_AUTH: 23,
  SQLITE_NOTADB: 26,
} as const;

/**
 * Another connection holds the lock, so a retry can succeed. PROTOCOL is a lost race for the lock
 * of the WAL index.
 */
const BUSY: ReadonlySet<number | undefined> = new Set([
  CODES.SQLITE_BUSY,
  CODES.SQLITE_LOCKED,
  CODES.SQLITE_PROTOCOL,
]);

/**
 * SQLITE_IOERR_DELETE_NOENT: the journal was deleted by another process. Processes that open a
 * new file together meet this while one of them switches it to WAL; seen with two processes and
 * libsql.
 */
const JOURNAL_GONE = 5898;

/** An extended result code holds the primary one in its low byte. */
const PRIMARY_CODE = 0xff;

/** Whether another connection is in the way, so that a retry can succeed. */
export function isBusy(error: unknown): boolean {
  return BUSY.has(resultCode(error)) || isJournalGone(error);
}

function isJournalGone(error: unknown): boolean {
  const { errcode, rawCode, code } = readCodes(error);
  return (
    errcode === JOURNAL_GONE || rawCode === JOURNAL_GONE || code === "SQLITE_IOERR_DELETE_NOENT"
  );
}

/** Translates an error of a driver for users; undefined if the error does not come from SQLite. */
export function translateError(error: unknown, path: string): ZaeLimiterError | undefined {
  const cause = { cause: error };
  switch (resultCode(error)) {
    case CODES.SQLITE_BUSY:
    case CODES.SQLITE_LOCKED:
    case CODES.SQLITE_PROTOCOL:
      return new RateLimiterUnavailable(
        `The database ${path} is locked by another process. Try again.`,
        cause,
      );
    case CODES.SQLITE_READONLY:
      return new PermissionDenied(
        `The database ${path} is read-only. Check the permissions of the file and of its folder.`,
        cause,
      );
    case CODES.SQLITE_PERM:
    case CODES.SQLITE_AUTH:
      return new PermissionDenied(
        `Access to the database ${path} was denied. Check its permissions.`,
        cause,
      );
    case CODES.SQLITE_IOERR:
      return new RateLimiterUnavailable(
        `The database ${path} could not be read or written: ${toMessage(error)}.`,
        cause,
      );
    case CODES.SQLITE_CORRUPT:
      return new RateLimiterUnavailable(
        `The database ${path} is damaged: ${toMessage(error)}. Restore it from a backup.`,
        cause,
      );
    case CODES.SQLITE_FULL:
      return new RateLimiterUnavailable(
        `The disk of the database ${path} is full. Nothing was written; free some space.`,
        cause,
      );
    case CODES.SQLITE_CANTOPEN:
      return new InfrastructureNotFoundError(
        `The database ${path} cannot be opened. Check the path, and that files can be created there.`,
        cause,
      );
    case CODES.SQLITE_NOTADB:
      return new ValidationError(
        "path",
        path,
        "the file is not a SQLite database; choose another path",
      );
    default:
      return undefined;
  }
}

/**
 * The primary result code of a driver's error. node:sqlite has `errcode`, libsql `rawCode`,
 * better-sqlite3 only a name such as SQLITE_IOERR_WRITE. libsql reports a failed open only in its
 * message.
 */
function resultCode(error: unknown): number | undefined {
  const { errcode, rawCode, code } = readCodes(error);
  for (const number of [errcode, rawCode])
    if (typeof number === "number") return number & PRIMARY_CODE;
  if (typeof code === "string" && code.startsWith("SQLITE_"))
    return (CODES as Readonly<Record<string, number>>)[code.split("_", 2).join("_")];
  const inWords = /^ConnectionFailed\(.*: (\d+)"\)$/s.exec(toMessage(error));
  return inWords === null ? undefined : Number(inWords[1]) & PRIMARY_CODE;
}

interface Codes {
  readonly errcode?: unknown;
  readonly rawCode?: unknown;
  readonly code?: unknown;
}

function readCodes(error: unknown): Codes {
  return typeof error === "object" && error !== null ? error : {};
}

function toMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
