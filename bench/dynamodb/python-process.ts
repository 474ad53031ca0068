import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { once } from "node:events";
import { createInterface, type Interface } from "node:readline";

/** Far above what any answer takes. */
const ANSWER_TIMEOUT_MS = 60_000;
const END_TIMEOUT_MS = 3_000;

/** One question after another, each a line; the answer is a line too. */
export class PythonProcess {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #answers: Interface;
  readonly #kill: () => void;
  #complaint = "";

  constructor(python: string, driver: string) {
    this.#child = spawn(python, ["-u", driver], { stdio: "pipe" });
    this.#answers = createInterface({ input: this.#child.stdout });
    this.#child.stderr.on(
      "data",
      (chunk: Buffer) => (this.#complaint = `${this.#complaint}${chunk}`.slice(-2000)),
    );
    // Its output has ended if it died, which is noticed there.
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
