import type { LoadReport } from "./load-report.ts";
import { describeVerdict, listFacts, listTables, type ReportTable } from "./report-rows.ts";

/** A report as Markdown, for pull requests and wikis. */
export function renderMarkdown(report: LoadReport): string {
  const { scenario, target, startedAt, artillery } = report;
  return [
    `# Load test: ${escapeCell(scenario)}`,
    `On \`${target.replaceAll("`", "'")}\`, ${startedAt}, Artillery ${artillery}.`,
    `**${escapeCell(describeVerdict(report))}**`,
    listFacts(report)
      .map((fact) => `- ${escapeCell(fact)}`)
      .join("\n"),
    ...listTables(report).flatMap((table) => [`## ${table.title}`, renderTable(table)]),
    "",
  ].join("\n\n");
}

function renderTable({ headers, rows }: ReportTable): string {
  const lines = [headers, headers.map((_, index) => (index === 0 ? "---" : "---:")), ...rows];
  return lines
    .map((cells) => `| ${cells.map((cell) => escapeCell(String(cell ?? ""))).join(" | ")} |`)
    .join("\n");
}

/** Names come from users: none may end a cell, or be read as HTML. */
function escapeCell(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll("|", "\\|")
    .replaceAll(/[\r\n]+/g, " ");
}
