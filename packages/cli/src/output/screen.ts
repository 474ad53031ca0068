import type { Environment } from "../environment.ts";
import { coloursFor, type Colours } from "./colours.ts";
import { jsonText } from "./json.ts";

/** Where a verb's answer goes: JSON for programs, or text for people. */
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

  /** Prints an answer: the value itself with `--json`, otherwise the text that is made of it. */
  show(value: unknown, text: () => string): void {
    this.#environment.stdout.write(this.json ? jsonText(value) : text());
  }

  /**
   * Tells a person how far a long operation is, on one line that is overwritten. Silent where
   * nobody watches.
   */
  progress(text: string): void {
    if (this.#environment.stderr.isTTY === true && !this.json)
      this.#environment.stderr.write(`\r${text}\u001B[K`);
  }

  /** Ends the line of `progress`. */
  endProgress(): void {
    this.progress("");
  }
}
