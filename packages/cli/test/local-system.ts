import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { zaeLimiter as inThisProcess, type Outcome } from "./command-line.ts";

/** The built program. */
const PROGRAM = fileURLToPath(new URL("../bin/zae-limiter.js", import.meta.url));

/** A folder with local systems, and the commands that work on them. */
export class LocalSystems {
  readonly folder = mkdtempSync(join(tmpdir(), "zae-limiter-local-"));

  get env(): Record<string, string> {
    return { ZAEL_LOCAL_FOLDER: join(this.folder, "state") };
  }

  /** Runs the built program in a process of its own. */
  run(words: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Outcome> {
    return new Promise((resolve) => {
      execFile(
        process.execPath,
        [PROGRAM, ...words],
        { env: { ...process.env, ...this.env, ...env }, cwd: this.folder },
        (error, stdout, stderr) =>
          resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr }),
      );
    });
  }

  /** Runs a verb other than `up` in this process, which is quicker. */
  async ask(line: string): Promise<Outcome> {
    return inThisProcess(line, { env: this.env });
  }

  /** What `local status` tells programs. */
  async status(stack = "zae-limiter"): Promise<Readonly<Record<string, unknown>>> {
    const { stdout } = await this.ask(`local status --json --stack ${stack}`);
    return JSON.parse(stdout) as Record<string, unknown>;
  }

  /** What `local env` tells programs. */
  async variables(): Promise<Readonly<Record<string, string>>> {
    const { stdout } = await this.ask("local env --format json");
    return JSON.parse(stdout) as Record<string, string>;
  }

  /** Ends what a failed test has left, and removes the folder. */
  async clear(stacks: readonly string[] = ["zae-limiter"]): Promise<void> {
    for (const stack of stacks)
      // `local down` would end the process of this test if it were that of the system.
      if ((await this.status(stack))["pid"] !== process.pid)
        await this.ask(`local down --stack ${stack}`);
    rmSync(this.folder, { recursive: true, force: true });
  }
}
