import type { TextOutput } from "../environment.ts";

type Paint = (text: string) => string;

/** Ways to make text stand out. Without colours, each returns the text unchanged. */
export interface Colours {
  readonly bold: Paint;
  readonly dim: Paint;
  readonly red: Paint;
  readonly green: Paint;
}

/**
 * Colours for a terminal, none for anything else. NO_COLOR (https://no-color.org) and dumb
 * terminals are respected.
 */
export function coloursFor(
  output: TextOutput,
  env: Readonly<Record<string, string | undefined>>,
): Colours {
  const wanted = output.isTTY === true && !env["NO_COLOR"] && env["TERM"] !== "dumb";
  const paint = (code: number): Paint =>
    wanted ? (text) => (text === "" ? "" : `\u001B[${code}m${text}\u001B[0m`) : (text) => text;
  return { bold: paint(1), dim: paint(2), red: paint(31), green: paint(32) };
}

/** No colours at all. */
export const PLAIN: Colours = coloursFor({ write: () => undefined }, {});
