import { PLAIN, type Colours } from "./colours.ts";
import { numberText, printable, measureWidth } from "./text.ts";

/** One bar: its label and its value. `gap` marks that something is missing before it. */
export interface Bar {
  readonly label: string;
  readonly value: number;
  readonly gap?: boolean;
}

/** Blocks from one to seven eighths of a cell. */
const EIGHTHS = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"] as const;
const MIN_BAR_CELLS = 10;

/**
 * Horizontal bars, scaled to the largest value. A negative value (a window in which more was given
 * back than taken) is drawn in another shade.
 */
export function chartText(
  title: string,
  bars: readonly Bar[],
  options: { readonly columns?: number; readonly colours?: Colours } = {},
): string {
  const { columns = 80, colours = PLAIN } = options;
  const labelWidth = Math.max(0, ...bars.map(({ label }) => measureWidth(printable(label))));
  const values = bars.map(({ value }) => numberText(value));
  const valueWidth = Math.max(0, ...values.map((value) => value.length));
  const room = Math.max(MIN_BAR_CELLS, columns - labelWidth - valueWidth - 4);
  const largest = Math.max(...bars.map(({ value }) => Math.abs(value)), 1);
  const lines = bars.flatMap(({ label, value, gap }, index) => {
    const bar = barText((Math.abs(value) / largest) * room, value < 0 ? "░" : "█");
    const line = [
      printable(label).padEnd(labelWidth),
      values[index]!.padStart(valueWidth),
      value < 0 ? colours.red(bar) : colours.green(bar),
    ].join("  ");
    return gap ? [colours.dim("⋮"), line] : [line];
  });
  return [colours.bold(printable(title)), ...lines].map((line) => `${line.trimEnd()}\n`).join("");
}

/** A bar of this many cells, exact to an eighth of a cell. */
export function barText(cells: number, full = "█"): string {
  const eighths = Math.round(cells * 8);
  return full.repeat(Math.floor(eighths / 8)) + (full === "█" ? EIGHTHS[eighths % 8]! : "");
}
