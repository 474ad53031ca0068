import {
  InfrastructureNotFoundError,
  PermissionDenied,
  RateLimiterUnavailable,
  ValidationError,
  type ZaeLimiterError,
} from "../../../core/errors.ts";

/**
 * SQLite's primary result codes that mean something to us, by the names that better-sqlite3 gives
 * them.
 */
const CODES: Readonly<Record<string, number>> = {
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
};

/**
 * Somebody else has the lock; trying again helps. PROTOCOL is a lost race for the lock of the WAL
 * index.
 */
const BUSY: ReadonlySet<number | undefined> = new Set([5, 6, 15]);

/**
 * The journal was gone before it could be deleted. Processes that open a new file together meet
 * this while one of them switches it to WAL; seen with two processes and libsql.
 */
const JOURNAL_GONE = 5898;

/** Whether another connection is in the way, so that trying again helps. */
export function isBusy(error: unknown): boolean {
  return BUSY.has(resultCode(error)) || isJournalGone(error);
}

function isJournalGone(error: unknown): boolean {
  const { errcode, rawCode, code } = codesOf(error);
  return (
    errcode === JOURNAL_GONE || rawCode === JOURNAL_GONE || code === "SQLITE_IOERR_DELETE_NOENT"
  );
}

/**
 * What a driver's error means to a user of the repository; undefined for an error that is not the
 * store's.
 */
export function translated(error: unknown, path: string): ZaeLimiterError | undefined {
  const cause = { cause: error };
  switch (resultCode(error)) {
    case 5:
    case 6:
    case 15:
      return new RateLimiterUnavailable(
        `The database ${path} is locked by another process.`,
        cause,
      );
    case 8:
      return new PermissionDenied(
        `The database ${path} is read-only. Check the rights of the file and of its folder.`,
        cause,
      );
    case 3:
    case 23:
      return new PermissionDenied(`Access to the database ${path} was denied.`, cause);
    case 10:
      return new RateLimiterUnavailable(
        `The database ${path} could not be read or written: ${messageOf(error)}.`,
        cause,
      );
    case 11:
      return new RateLimiterUnavailable(
        `The database ${path} is damaged: ${messageOf(error)}. Restore it from a backup.`,
        cause,
      );
    case 13:
      return new RateLimiterUnavailable(
        `The disk of the database ${path} is full. Nothing of this call was written.`,
        cause,
      );
    case 14:
      return new InfrastructureNotFoundError(
        `The database ${path} cannot be opened. Check that it may be created there.`,
        cause,
      );
    case 26:
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
 * better-sqlite3 only a name such as SQLITE_IOERR_WRITE; extended codes keep the primary one in
 * their low byte. libsql tells of a failed open in words alone.
 */
function resultCode(error: unknown): number | undefined {
  const { errcode, rawCode, code } = codesOf(error);
  for (const number of [errcode, rawCode]) if (typeof number === "number") return number & 0xff;
  if (typeof code === "string" && code.startsWith("SQLITE_"))
    return CODES[code.split("_", 2).join("_")];
  const inWords = /^ConnectionFailed\(.*: (\d+)"\)$/s.exec(messageOf(error));
  return inWords === null ? undefined : Number(inWords[1]) & 0xff;
}

interface Codes {
  readonly errcode?: unknown;
  readonly rawCode?: unknown;
  readonly code?: unknown;
}

function codesOf(error: unknown): Codes {
  return typeof error === "object" && error !== null ? error : {};
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
