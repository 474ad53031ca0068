import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { RuntimeApi, type Outcome } from "./runtime-api.ts";

/** The program that stands for Lambda's runtime client. */
const BOOTSTRAP = fileURLToPath(new URL("bootstrap.mjs", import.meta.url));

/**
 * A function in a process of its own, as Lambda runs it: in a folder that holds nothing but its
 * bundle, with an environment that holds nothing but its settings.
 */
export class FunctionProcess {
  readonly #api: RuntimeApi;
  readonly #child: ChildProcess;
  readonly #folder: string;
  #output = "";

  private constructor(api: RuntimeApi, child: ChildProcess, folder: string) {
    this.#api = api;
    this.#child = child;
    this.#folder = folder;
    for (const stream of [child.stdout!, child.stderr!])
      stream.on("data", (chunk: Buffer) => (this.#output += String(chunk)));
  }

  static async start(options: {
    readonly node: string;
    readonly bundle: string;
    readonly environment: Readonly<Record<string, string>>;
  }): Promise<FunctionProcess> {
    const folder = mkdtempSync(join(tmpdir(), "function-"));
    copyFileSync(options.bundle, join(folder, "index.mjs"));
    const api = new RuntimeApi();
    const child = spawn(options.node, [BOOTSTRAP], {
      cwd: folder,
      env: {
        ...options.environment,
        AWS_LAMBDA_RUNTIME_API: await api.listen(),
        LAMBDA_TASK_ROOT: folder,
        _HANDLER: "index.handler",
      },
      stdio: ["ignore", "pipe", "pipe"],
    });
    return new FunctionProcess(api, child, folder);
  }

  /** The files that it was given. */
  get files(): readonly string[] {
    return readdirSync(this.#folder);
  }

  /** The lines that it has printed since they were last taken. */
  takeLines(): readonly unknown[] {
    const lines = this.#output.split("\n").filter((line) => line !== "");
    this.#output = "";
    return lines.map((line) => (line.startsWith("{") ? (JSON.parse(line) as unknown) : line));
  }

  invoke(event: unknown, timeoutMs?: number): Promise<Outcome> {
    return this.#api.invoke(event, timeoutMs);
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) {
      this.#child.kill("SIGKILL");
      await once(this.#child, "exit");
    }
    await this.#api.stop();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
