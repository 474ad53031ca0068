import type { Environment } from "../environment.ts";
import { coloursFor, type Colours } from "./colours.ts";
import { jsonText } from "./json.ts";

/** Prints the results of verbs: JSON for programs, or text for people. */
export class Screen {
  readonly colours: Colours;
  readonly columns: number;
  readonly json: boolean;
  readonly #environment: Environment;

  constructor(environment: Environment, json: boolean) {
    this.#environment = environment;
    this.json = json;
    this.colours = coloursFor(environment.stdout, environment.env);
    this.columns = environment.stdout.columns ?? 80;
  }

  /** Prints a result: the value itself with `--json`, otherwise the text. */
  show(value: unknown, text: () => string): void {
    this.#environment.stdout.write(this.json ? jsonText(value) : text());
  }

  /** Prints a note for people about a result, on standard error. */
  notice(text: string): void {
    this.#environment.stderr.write(`${text}\n`);
  }

  /** Whether a line of progress can be overwritten, which needs a terminal. */
  get isRewritable(): boolean {
    return this.#environment.stderr.isTTY === true && !this.json;
  }

  /**
   * Shows the progress of a long operation on one line that is overwritten. Prints nothing without
   * a terminal.
   */
  progress(text: string): void {
    if (this.isRewritable) this.#environment.stderr.write(`\r${text}\u001B[K`);
  }

  /** Clears the line of `progress`. */
  endProgress(): void {
    this.progress("");
  }
}
