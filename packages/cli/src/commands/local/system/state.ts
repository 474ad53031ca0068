import { appendFileSync, mkdirSync, rmSync, statSync } from "node:fs";
import { homedir, userInfo } from "node:os";
import { join } from "node:path";
import type { Environment } from "../../../environment.ts";
import { LocalError } from "../../../exit.ts";
import { currentClaim, isHeld, type Claimed } from "./claim.ts";
import type { ControlAddress } from "./control.ts";
import type { EngineName } from "./engine.ts";
import type { ProcessIdentity } from "./process-identity.ts";

/** What is known of a local system from outside. It is stored while the system runs, and after. */
export interface LocalState extends Claimed {
  readonly stack: string;
  readonly region: string;
  readonly phase: "starting" | "running" | "ended";
  /** How the supervisor is asked and told something. */
  readonly control: ControlAddress;
  readonly startedAt: string;
  readonly engine: EngineName;
  /** Where data is kept; absent when it is in memory only. */
  readonly data?: string;
  /** The rest is known once the engine is started. */
  readonly engineProcess?: ProcessIdentity;
  readonly endpointUrl?: string;
  /** Why it ended, unless somebody asked for it. */
  readonly reason?: string;
}

/** A local system that may or may not run, as its folder shows it. */
export type FoundSystem =
  | { readonly is: "absent" }
  | { readonly is: "ended" | "dead" | "alive"; readonly state: LocalState };

/** What a log may hold before it is begun anew at the next start. */
const MOST_LOG_BYTES = 1_000_000;

/** The folder of one local system: one for each stack, below that of the user. */
export class LocalFolder {
  readonly path: string;

  constructor(stack: string, env: Environment["env"]) {
    this.path = join(userFolder(env), stack);
  }

  /** Where the log is. */
  get log(): string {
    return join(this.path, "log.txt");
  }

  /** What the folder shows of the system. */
  async find(): Promise<FoundSystem> {
    const claim = await currentClaim<LocalState>(this.path);
    if (claim === undefined || claim.content.stack === undefined) return { is: "absent" };
    const state = claim.content;
    if (state.released === true) return { is: "ended", state };
    return { is: isHeld(state) ? "alive" : "dead", state };
  }

  /** Creates the folder, or throws if that cannot be. */
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

  /** Begins the log anew if it has become too long. */
  shortenLog(): void {
    const bytes = statSync(this.log, { throwIfNoEntry: false })?.size ?? 0;
    if (bytes > MOST_LOG_BYTES) rmSync(this.log);
  }

  /** Adds a line to the log. */
  writeLog(line: string): void {
    appendFileSync(this.log, `${line}\n`);
  }
}

/** `ZAEL_LOCAL_FOLDER`, or where programs of this platform keep what they must remember. */
export function userFolder(
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
