import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { once } from "node:events";
import { createInterface, type Interface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { Bill } from "./bill.ts";
import { NEVER_REACHED } from "./cases.ts";
import type { Contestant } from "./contestant.ts";
import { pythonEnvironment } from "./python-environment.ts";

const REQUIREMENT = "zae-limiter==0.17.0";
const driver = fileURLToPath(new URL("../../dynamodb/original_driver.py", import.meta.url));

/** Far above what any answer takes. */
const ANSWER_TIMEOUT_MS = 60_000;
const END_TIMEOUT_MS = 3_000;

/** The original, or why it does not take part. */
export async function original(
  endpointUrl: string,
  options: { readonly mayInstall: boolean },
): Promise<Contestant | { readonly missing: string }> {
  const environment = await pythonEnvironment(REQUIREMENT, options);
  if ("missing" in environment) return environment;
  const python = new PythonProcess(environment.python);
  try {
    const versions = (await python.ask({
      do: "open",
      endpoint: endpointUrl,
      never: NEVER_REACHED,
    })) as Readonly<Record<string, string>>;
    return contestant(
      python,
      `the original ${versions["zae_limiter"]}, Python ${versions["python"]}`,
    );
  } catch (error) {
    await python.end();
    return { missing: `it could not be opened: ${(error as Error).message}` };
  }
}

function contestant(python: PythonProcess, name: string): Contestant {
  return {
    id: "original",
    name,
    enter: async (race) => {
      await python.ask({ do: "enter", case: race });
      return {
        run: async (operations) => {
          const { wall, cpu } = (await python.ask({ do: "run", operations })) as {
            readonly wall: number;
            readonly cpu: number;
          };
          return { wallNs: wall * 1e9, cpuNs: cpu * 1e9 };
        },
        bill: async (operations) => (await python.ask({ do: "bill", operations })) as Bill,
      };
    },
    close: async () => python.end(),
  };
}

/** One question after another, each a line; the answer is a line too. */
class PythonProcess {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #answers: Interface;
  readonly #kill: () => void;
  #complaint = "";

  constructor(python: string) {
    this.#child = spawn(python, ["-u", driver], { stdio: "pipe" });
    this.#answers = createInterface({ input: this.#child.stdout });
    this.#child.stderr.on(
      "data",
      (chunk: Buffer) => (this.#complaint = `${this.#complaint}${chunk}`.slice(-2000)),
    );
    // Writing to one that has died is told by its output, which has ended.
    this.#child.stdin.on("error", () => {});
    this.#kill = () => void this.#child.kill("SIGKILL");
    process.once("exit", this.#kill);
  }

  async ask(question: object): Promise<object> {
    if (this.#hasEnded()) throw new Error(`it has ended: ${this.#complaint}`);
    const over = new AbortController();
    const timeout = setTimeout(
      () => over.abort(new Error(`no answer within ${ANSWER_TIMEOUT_MS} ms`)),
      ANSWER_TIMEOUT_MS,
    );
    try {
      const ended = once(this.#answers, "close", { signal: over.signal }).then(() =>
        Promise.reject(new Error(`it ended: ${this.#complaint}`)),
      );
      const answered = once(this.#answers, "line", { signal: over.signal });
      this.#child.stdin.write(`${JSON.stringify(question)}\n`);
      const [line] = (await Promise.race([answered, ended])) as [string];
      const answer = JSON.parse(line) as { readonly error?: string };
      if (answer.error !== undefined) throw new Error(answer.error);
      return answer;
    } finally {
      clearTimeout(timeout);
      over.abort();
    }
  }

  /** It ends when its input does; if it does not, it is made to. */
  async end(): Promise<void> {
    if (!this.#hasEnded()) {
      this.#child.stdin.end();
      const timeout = setTimeout(this.#kill, END_TIMEOUT_MS);
      await once(this.#child, "exit");
      clearTimeout(timeout);
    }
    process.off("exit", this.#kill);
  }

  #hasEnded(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }
}
