// A folder belongs to one process at a time. Claims are files with rising numbers, and the highest
// is in force:
//
//   held      its process lives           nobody else gets the folder
//   released  `released` is set in it     the next claim gets the next number
//   stale     its process has died        the next claim gets the next number
//
// A file is created only where none is, so of several processes that see the same released or stale
// claim, one gets the next number. Numbers only rise: a process that looked long ago, and creates
// its file late, has a number below the highest, sees that, and has lost.
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { LocalError } from "../../../exit.ts";
import { isAlive, type ProcessIdentity } from "./process-identity.ts";

/** What a claim says. */
export interface Claimed {
  readonly holder: ProcessIdentity;
  readonly released?: boolean;
}

/** Who has a folder, or had it last. */
export interface FoundClaim<T extends Claimed> {
  readonly number: number;
  readonly content: T;
}

/** How often a claim is tried: each time, somebody else was faster. */
const MOST_ATTEMPTS = 10;

/** How long somebody who has just created a claim may take to write it. */
const WRITTEN_WITHIN_MS = 500;
const POLL_MS = 20;

/** Whether a claim is in force. */
export function isHeld({ holder, released = false }: Claimed): boolean {
  return !released && isAlive(holder);
}

/** The claim that is in force, or was last. */
export async function currentClaim<T extends Claimed>(
  folder: string,
): Promise<FoundClaim<T> | undefined> {
  for (let waitedMs = 0; ; waitedMs += POLL_MS) {
    const number = Math.max(0, ...claimNumbers(folder));
    if (number === 0) return undefined;
    try {
      return { number, content: JSON.parse(readFileSync(fileOf(folder, number), "utf8")) as T };
    } catch {
      // It is being written, or a newer one has taken its place.
      if (waitedMs >= WRITTEN_WITHIN_MS) return { number, content: ABANDONED as T };
      await sleep(POLL_MS);
    }
  }
}

/** A claim whose process died before it had written it. */
const ABANDONED: Claimed = { holder: { pid: 0, began: "" }, released: true };

/** What came of an attempt to get a folder. */
export type ClaimOutcome<T extends Claimed> =
  | { readonly claim: Claim<T>; readonly before: T | undefined }
  | { readonly heldBy: T };

/** A folder that this process has. */
export class Claim<T extends Claimed> {
  readonly #path: string;
  #content: T;

  private constructor(path: string, content: T) {
    this.#path = path;
    this.#content = content;
  }

  /** Gets a folder, which is created if it is missing, unless a living process has it. */
  static async take<T extends Claimed>(folder: string, content: T): Promise<ClaimOutcome<T>> {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    for (let attempt = 1; attempt <= MOST_ATTEMPTS; attempt += 1) {
      const before = await currentClaim<T>(folder);
      if (before !== undefined && isHeld(before.content)) return { heldBy: before.content };
      const number = (before?.number ?? 0) + 1;
      if (!created(fileOf(folder, number), content)) continue;
      const numbers = claimNumbers(folder);
      if (Math.max(...numbers) === number) {
        for (const old of numbers) if (old < number) rmSync(fileOf(folder, old), { force: true });
        return { claim: new Claim(fileOf(folder, number), content), before: before?.content };
      }
      rmSync(fileOf(folder, number), { force: true });
    }
    throw new LocalError(`${folder} is in use by other processes that begin and end. Try again.`);
  }

  get content(): T {
    return this.#content;
  }

  /** Whether its file is still there: somebody may have removed the folder. */
  get isThere(): boolean {
    return existsSync(this.#path);
  }

  /** Changes what the claim says, for readers in one step. */
  update(change: Partial<T>): void {
    this.#content = { ...this.#content, ...change };
    const draft = `${this.#path}.draft`;
    writeFileSync(draft, JSON.stringify(this.#content), { mode: 0o600 });
    renameSync(draft, this.#path);
  }
}

function created(path: string, content: object): boolean {
  try {
    writeFileSync(path, JSON.stringify(content), { flag: "wx", mode: 0o600 });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}

function fileOf(folder: string, number: number): string {
  return join(folder, `claim-${number}.json`);
}

function claimNumbers(folder: string): readonly number[] {
  let names: readonly string[];
  try {
    names = readdirSync(folder);
  } catch (error) {
    if (["ENOENT", "ENOTDIR"].includes((error as NodeJS.ErrnoException).code ?? "")) return [];
    throw error;
  }
  return names.flatMap((name) => {
    const [, number] = /^claim-(\d+)\.json$/.exec(name) ?? [];
    return number === undefined ? [] : [Number(number)];
  });
}
