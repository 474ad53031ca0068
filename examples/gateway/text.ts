import { styleText, stripVTControlCharacters } from "node:util";

/** The width of a terminal that does not report its own. */
export const DEFAULT_COLUMNS = 80;

/** Makes text stand out, or leaves it as it is where colours do not belong. */
export type Paint = (format: "bold" | "green" | "red", text: string) => string;

/** Colours for a terminal. Node leaves them out for a pipe, a dumb terminal and `NO_COLOR`. */
export function paintFor(stream: NodeJS.WriteStream): Paint {
  return (format, text) => styleText(format, text, { stream });
}

const NUMBERS = new Intl.NumberFormat("en-US", { maximumFractionDigits: 2 });

/** A number for people: 12,345.67. */
export function numberText(value: number): string {
  return NUMBERS.format(value);
}

/** Blocks from one to seven eighths of a cell. */
const EIGHTHS = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"] as const;

/** A bar of this many cells, exact to an eighth of a cell. */
export function barText(cells: number): string {
  const eighths = Math.round(cells * 8);
  return "█".repeat(Math.floor(eighths / 8)) + EIGHTHS[eighths % 8]!;
}

/**
 * A table with numbers aligned to the right. Every character must be one cell wide in a terminal.
 */
export function tableText(
  headers: readonly string[],
  rows: readonly (readonly (string | number)[])[],
  paint: Paint,
): string {
  const texts = rows.map((row) =>
    row.map((cell) => (typeof cell === "number" ? numberText(cell) : cell)),
  );
  const widths = headers.map((header, column) =>
    Math.max(header.length, ...texts.map((row) => row[column]!.length)),
  );
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, column) =>
        typeof rows[0]?.[column] === "number"
          ? cell.padStart(widths[column]!)
          : cell.padEnd(widths[column]!),
      )
      .join("  ")
      .trimEnd();
  return `${paint("bold", line(headers))}\n${texts.map((row) => `${line(row)}\n`).join("")}`;
}

/** Breaks a sentence between words into lines; all lines but the first are indented. */
export function wrapText(text: string, columns: number, indent = 0): string {
  const [first = "", ...words] = text.match(/^ *[^ ]*| +[^ ]+/g) ?? [];
  const lines: string[] = [];
  let line = first;
  for (const word of words) {
    if (measureWidth(line) + measureWidth(word) <= columns) line += word;
    else {
      lines.push(line);
      line = " ".repeat(indent) + word.trimStart();
    }
  }
  return [...lines, line].join("\n");
}

/** Colours take no cells. */
function measureWidth(text: string): number {
  return stripVTControlCharacters(text).length;
}
