// A folder belongs to one process at a time. Two files in it show which one:
//
//   pid.json   the owner, and what it wants others to know; stays when the owner has ended
//   lock       exists while a process decides whether it may become the owner
//
// The pid and the start time show whether an owner has died without releasing the folder, and
// likewise the holder of a lock.
import {
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { LocalError } from "../../../exit.ts";
import { identifyThisProcess, isRunning, type ProcessIdentity } from "./process.ts";

/** The content of a pid file. */
export interface Ownership {
  readonly owner: ProcessIdentity;
  /** Whether the owner has given the folder back. */
  readonly ended?: boolean;
}

/** Whether a folder has an owner now. */
export function isOwned({ owner, ended = false }: Ownership): boolean {
  return !ended && isRunning(owner);
}

/** The result of an attempt to own a folder. */
export type TakeOutcome<T extends Ownership> =
  | { readonly taken: true; readonly before: T | undefined }
  | { readonly taken: false; readonly ownedBy: T };

const POLL_MS = 20;
/** A lock is held for milliseconds; longer where reading the start time of a process is slow. */
const LOCKED_WITHIN_MS = 10_000;
/** How long a process may take between creating a lock and writing to it. */
const WRITTEN_WITHIN_MS = 2000;

/** The files of one folder. */
export class PidFile<T extends Ownership> {
  readonly #folder: string;
  readonly #path: string;
  readonly #lock: string;

  constructor(folder: string) {
    this.#folder = folder;
    this.#path = join(folder, "pid.json");
    this.#lock = join(folder, "lock");
  }

  /** Whether the file exists: the folder may have been removed. */
  get exists(): boolean {
    return existsSync(this.#path);
  }

  /** The content written by the current or last owner; undefined if there never was one. */
  read(): T | undefined {
    const content = readJson(this.#path);
    if (content === undefined || isOwnership(content)) return content as T | undefined;
    // A data folder may be one that another program keeps its own files in.
    throw new LocalError(
      `${this.#path} was not written by zae-limiter. Choose another folder, or remove the file.`,
    );
  }

  /** Makes the owner in `content` own the folder, which is created, unless another process does. */
  async take(content: T): Promise<TakeOutcome<T>> {
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
    await this.#acquireLock();
    try {
      const before = this.read();
      if (before !== undefined && isOwned(before)) return { taken: false, ownedBy: before };
      this.write(content);
      return { taken: true, before };
    } finally {
      rmSync(this.#lock, { force: true });
    }
  }

  /** Replaces the content of the file; only the owner may. Readers see the old or the new text. */
  write(content: T): void {
    const draft = `${this.#path}.draft`;
    writeFileSync(draft, JSON.stringify(content), { mode: 0o600 });
    renameSync(draft, this.#path);
  }

  async #acquireLock(): Promise<void> {
    const own = JSON.stringify(identifyThisProcess());
    for (let waitedMs = 0; waitedMs < LOCKED_WITHIN_MS; waitedMs += POLL_MS) {
      try {
        return writeFileSync(this.#lock, own, { flag: "wx", mode: 0o600 });
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
      }
      if (this.#isLockStale()) rmSync(this.#lock, { force: true });
      else await sleep(POLL_MS);
    }
    throw new LocalError(
      `${this.#folder} is locked by another process. If there is none, remove ${this.#lock}.`,
    );
  }

  #isLockStale(): boolean {
    const holder = readJson(this.#lock) as ProcessIdentity | undefined;
    if (holder === undefined) {
      const createdMs = statSync(this.#lock, { throwIfNoEntry: false })?.mtimeMs;
      return createdMs !== undefined && Date.now() - createdMs > WRITTEN_WITHIN_MS;
    }
    // The check may take a while, during which another process may have replaced the lock.
    return !isRunning(holder) && (readJson(this.#lock) as typeof holder)?.pid === holder.pid;
  }
}

function isOwnership(content: unknown): boolean {
  const { pid, start } = (content as Partial<Ownership> | null)?.owner ?? {};
  return typeof pid === "number" && typeof start === "string";
}

/** The content of a file; undefined if it does not exist or is not complete. */
function readJson(path: string): unknown {
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch (error) {
    const { code = "" } = error as NodeJS.ErrnoException;
    if (error instanceof SyntaxError || ["ENOENT", "ENOTDIR"].includes(code)) return undefined;
    throw error;
  }
}
