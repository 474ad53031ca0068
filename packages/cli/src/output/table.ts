import { PLAIN, type Colours } from "./colours.ts";
import { numberText, printable, measureWidth } from "./text.ts";

/** The values of a cell; numbers are aligned to the right. */
export type Cell = string | number | boolean | undefined;

const GAP = "  ";

/** A table for people: a header, aligned columns, no borders. */
export function tableText(
  headers: readonly string[],
  rows: readonly (readonly Cell[])[],
  colours: Colours = PLAIN,
): string {
  const texts = rows.map((row) => headers.map((_, index) => cellText(row[index])));
  const widths = headers.map((header, index) =>
    // Not spread into one call: a long table has more rows than a call may have arguments.
    texts.reduce((most, row) => Math.max(most, measureWidth(row[index]!)), measureWidth(header)),
  );
  const right = headers.map(
    (_, index) => rows.length > 0 && rows.every((row) => typeof row[index] === "number"),
  );
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, index) => pad(cell, widths[index]!, right[index]!))
      .join(GAP)
      .trimEnd();
  return [colours.bold(line(headers)), ...texts.map(line)].map((text) => `${text}\n`).join("");
}

/** The fields of one object, one to a line. Absent ones are left out. */
export function fieldsText(
  fields: readonly (readonly [string, Cell])[],
  colours: Colours = PLAIN,
): string {
  const given = fields.filter(([, value]) => value !== undefined && value !== "");
  const width = Math.max(...given.map(([name]) => measureWidth(name)));
  return given
    .map(([name, value]) => `${colours.bold(pad(name, width, false))}${GAP}${cellText(value)}\n`)
    .join("");
}

function cellText(cell: Cell): string {
  if (cell === undefined) return "";
  if (typeof cell === "boolean") return cell ? "yes" : "no";
  return typeof cell === "number" ? numberText(cell) : printable(cell);
}

function pad(text: string, width: number, right: boolean): string {
  const space = " ".repeat(Math.max(0, width - measureWidth(text)));
  return right ? space + text : text + space;
}
