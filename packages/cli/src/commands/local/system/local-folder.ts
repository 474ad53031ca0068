import { appendFileSync, mkdirSync, openSync, statSync, truncateSync } from "node:fs";
import { homedir, userInfo } from "node:os";
import { join } from "node:path";
import type { Environment } from "../../../environment.ts";
import { LocalError } from "../../../exit.ts";
import type { EngineName } from "./engine.ts";
import type { AggregatorStatus } from "./local-aggregator.ts";
import { isOwned, PidFile, type Ownership } from "./pid-file.ts";
import { endProcess, identifyThisProcess, type ProcessIdentity } from "./process.ts";

/** The content of the pid file of a local system. */
export interface LocalState extends Ownership {
  readonly stack: string;
  readonly region: string;
  readonly phase: "starting" | "running" | "ended";
  readonly startedAt: string;
  readonly engine: EngineName;
  /** Where data is kept; absent when it is in memory only. */
  readonly data?: string;
  /** The rest is known once the engine is started. */
  readonly engineProcess?: ProcessIdentity;
  readonly endpointUrl?: string;
  readonly aggregator?: AggregatorStatus;
  /** Why it ended, unless it was asked to. */
  readonly reason?: string;
}

/** A local system that may or may not run, as its folder shows it. */
export type FoundSystem =
  | { readonly is: "absent" }
  | { readonly is: "ended" | "dead" | "alive"; readonly state: LocalState };

/** The result of ending a local system. */
export interface Ending {
  readonly wasRunning: boolean;
  readonly data?: string;
}

/** The most bytes that a log may hold before the next start replaces it. */
const MOST_LOG_BYTES = 1_000_000;

/** How long a system may take to end: for the batches of its aggregator, and for its engine. */
const END_WITHIN_MS = 30_000;

/** The folder of one local system: one for each stack, below that of the user. */
export class LocalFolder {
  readonly path: string;
  readonly pidFile: PidFile<LocalState>;

  constructor(stack: string, env: Environment["env"]) {
    this.path = join(findUserFolder(env), stack);
    this.pidFile = new PidFile(this.path);
  }

  /** Where the log is. */
  get log(): string {
    return join(this.path, "log.txt");
  }

  /** The state of the system, as the folder shows it. */
  find(): FoundSystem {
    const state = this.pidFile.read();
    if (state === undefined) return { is: "absent" };
    if (state.ended === true) return { is: "ended", state };
    return { is: isOwned(state) ? "alive" : "dead", state };
  }

  /** Creates the folder, or throws if that is not possible. */
  create(): void {
    try {
      mkdirSync(this.path, { recursive: true, mode: 0o700 });
    } catch (error) {
      throw new LocalError(
        `The folder ${this.path} cannot be used: ${(error as Error).message}. ` +
          "Choose another with ZAEL_LOCAL_FOLDER.",
      );
    }
  }

  /** Starts a new log if this one has become too long. */
  shortenLog(): void {
    const bytes = statSync(this.log, { throwIfNoEntry: false })?.size ?? 0;
    if (bytes > MOST_LOG_BYTES) truncateSync(this.log);
  }

  /** Adds a line to the log. */
  writeLog(line: string): void {
    appendFileSync(this.log, `${line}\n`);
  }

  /** Opens the log, for a process to write to. */
  openLog(): number {
    return openSync(this.log, "a");
  }

  /** Ends the system, and the engine of one that has died, and waits until they have ended. */
  async end(): Promise<Ending> {
    const found = this.find();
    if (found.is === "absent" || found.is === "ended") return { wasRunning: false };
    await endOrThrow(found.state.owner);
    const { data } = found.state;
    // It has not ended by itself, so its engine runs, and it could not write that it has ended.
    const after = this.find();
    if (after.is === "dead") {
      if (after.state.engineProcess !== undefined) await endOrThrow(after.state.engineProcess);
      const owner = identifyThisProcess();
      await this.pidFile.take({ ...after.state, owner, phase: "ended", ended: true });
    }
    return { wasRunning: true, ...(data !== undefined && { data }) };
  }
}

async function endOrThrow(target: ProcessIdentity): Promise<void> {
  if (await endProcess(target, END_WITHIN_MS)) return;
  throw new LocalError(`Process ${target.pid} does not end. End it yourself.`);
}

/** `ZAEL_LOCAL_FOLDER`, or the folder of this platform for the state of programs. */
export function findUserFolder(
  env: Environment["env"],
  { platform = process.platform, home = homedir() || userInfo().homedir } = {},
): string {
  const chosen = env["ZAEL_LOCAL_FOLDER"];
  if (chosen) return chosen;
  if (platform === "win32")
    return join(env["LOCALAPPDATA"] || join(home, "AppData", "Local"), "zae-limiter", "local");
  if (platform === "darwin")
    return join(home, "Library", "Application Support", "zae-limiter", "local");
  return join(env["XDG_STATE_HOME"] || join(home, ".local", "state"), "zae-limiter", "local");
}
