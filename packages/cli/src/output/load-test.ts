import type { LoadReport } from "artillery-engine-zae-limiter/run";
import type { Colours } from "./colours.ts";
import { tableText } from "./table.ts";
import { printable } from "./text.ts";

/** The rows and sentences of a report; loaded with the package. */
type Rows = Pick<
  typeof import("artillery-engine-zae-limiter/run"),
  "describeVerdict" | "listFacts" | "listTables"
>;

/** The report of a load test, for people. */
export function loadReportText(report: LoadReport, rows: Rows, colours: Colours): string {
  const tables = rows
    .listTables(report)
    .map(({ title, headers, rows: cells }) => `${title}\n${tableText(headers, cells, colours)}`);
  const facts = rows.listFacts(report).map((fact) => `${printable(fact)}\n`);
  const paint = report.passed ? colours.green : colours.red;
  const verdict = `${paint(printable(rows.describeVerdict(report)))}\n`;
  return [...tables, facts.join("") + verdict].join("\n");
}

/** One line of a table that grows while a test runs: every cell as wide as its header. */
export function growingRowText(
  headers: readonly string[],
  cells: readonly (string | number | undefined)[],
): string {
  return headers
    .map((header, index) => String(cells[index] ?? "").padStart(Math.max(9, header.length)))
    .join(" ");
}
