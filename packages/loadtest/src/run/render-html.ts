import { drawChart, escapeHtml, type Series } from "./draw-chart.ts";
import type { LoadReport, PeriodRow } from "./load-report.ts";
import { describeVerdict, listFacts, listTables, type ReportTable } from "./report-rows.ts";

/** Colours that people with colour blindness can tell apart, on light and on dark. */
const COLOURS = ["#2a78b8", "#d9822b", "#b04a8a"];

const STYLE = `
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 50rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
.passed { border-left: 4px solid #2e8b57; padding-left: .8rem; }
.failed { border-left: 4px solid #c0392b; padding-left: .8rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .7rem; text-align: right; border-bottom: 1px solid #8884; }
th:first-child, td:first-child { text-align: left; }
figure { margin: 1.5rem 0; } svg { width: 100%; height: auto; }
svg text { font-size: 11px; fill: currentColor; } .grid { stroke: #8884; }
polyline { fill: none; stroke-width: 2; }
${COLOURS.map(
  (colour, index) =>
    `.line-${index} { stroke: ${colour}; } .dot-${index} { fill: ${colour}; } ` +
    `.key-${index}::before { content: "●"; color: ${colour}; margin: 0 .2rem 0 .6rem; }`,
).join("\n")}
`;

/** A page that loads nothing: the policy forbids it even if a name got past the escaping. */
const POLICY = "default-src 'none'; style-src 'unsafe-inline'";

/** A report as one HTML page with charts, which can be read without a network. */
export function renderHtml(report: LoadReport): string {
  const { scenario, target, startedAt, artillery, passed } = report;
  const title = `Load test: ${escapeHtml(scenario)}`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${POLICY}">
<meta name="viewport" content="width=device-width">
<title>${title}</title>
<style>${STYLE}</style>
</head>
<body>
<h1>${title}</h1>
<p>On <code>${escapeHtml(target)}</code>, ${escapeHtml(startedAt)}, Artillery ${escapeHtml(artillery)}.</p>
<p class="${passed ? "passed" : "failed"}">${escapeHtml(describeVerdict(report))}</p>
<ul>${listFacts(report)
    .map((fact) => `<li>${escapeHtml(fact)}</li>`)
    .join("")}</ul>
${drawCharts(report.periods)}
${listTables(report).map(renderTable).join("\n")}
</body>
</html>
`;
}

function drawCharts(periods: readonly PeriodRow[]): string {
  // The middle of a period, because its numbers are those of all of it.
  const atSeconds = periods.map(({ atSeconds: begin, seconds }) => begin + seconds / 2);
  const endSeconds = Math.max(1, ...periods.map((row) => row.atSeconds + row.seconds));
  const series = (name: string, read: (row: PeriodRow) => number | undefined): Series => ({
    name,
    values: periods.map(read),
  });
  return [
    {
      title: "Rate",
      unit: "a second",
      series: [
        series("granted", (row) => row.granted / row.seconds),
        series("users", (row) => row.users / row.seconds),
      ],
    },
    {
      title: "Refusals",
      unit: "a second",
      series: [
        series("refused", (row) => row.refused / row.seconds),
        series("errors", (row) => row.errors / row.seconds),
      ],
    },
    {
      title: "Latency of acquire",
      unit: "ms",
      series: [
        series("p50", (row) => toMs(row.p50Us)),
        series("p95", (row) => toMs(row.p95Us)),
        series("p99", (row) => toMs(row.p99Us)),
      ],
    },
  ]
    .map((chart) => drawChart(chart, { atSeconds, endSeconds }))
    .join("\n");
}

function toMs(us: number | undefined): number | undefined {
  return us === undefined ? us : us / 1000;
}

function renderTable({ title, headers, rows }: ReportTable): string {
  const lines = [renderLine(headers, "th"), ...rows.map((row) => renderLine(row, "td"))];
  return `<h2>${escapeHtml(title)}</h2><table>${lines.join("")}</table>`;
}

function renderLine(cells: ReportTable["rows"][number], tag: string): string {
  const texts = cells.map((cell) => `<${tag}>${escapeHtml(String(cell ?? ""))}</${tag}>`);
  return `<tr>${texts.join("")}</tr>`;
}
