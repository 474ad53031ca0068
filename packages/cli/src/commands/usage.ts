import { Option, type Command } from "commander";
import type { UsageSnapshot, UsageSummary, UsageWindow } from "zae-limiter";
import { UsageError } from "../exit.ts";
import { chartText, type Bar } from "../output/chart.ts";
import type { Colours } from "../output/colours.ts";
import type { Screen } from "../output/screen.ts";
import { fieldsText, tableText } from "../output/table.ts";
import { ageText, amountsText, timeText } from "../output/text.ts";
import { timeArgument } from "./support/arguments.ts";
import { collectPages, moreText, type ListOptions } from "./support/pages.ts";
import type { Session } from "./support/session.ts";
import {
  addNoun,
  addVerb,
  cursorOption,
  chooseEntity,
  listLimitOption,
  takeEntity,
} from "./support/verb.ts";

/** Adds the verbs of `usage`: what was consumed, window by window. */
export function addUsageCommands(program: Command, session: Session): void {
  const usage = addNoun(program, "usage", "Shows what was consumed, by hour, day or month.");

  takeQuery(
    addVerb(usage, {
      usage: "list",
      summary:
        "Lists the usage windows of an entity, of a resource, or of an entity on a resource.",
      examples: [
        "usage list key-1 --window daily --start 7d",
        "usage list --resource gpt-4 --start 2026-11-01 --end 2026-12-01 --plot",
      ],
    }),
    session,
  )
    .option("-p, --plot", "Draw a chart instead of a table.")
    .addOption(listLimitOption())
    .addOption(cursorOption())
    .action(
      async (named: string | undefined, options: QueryOptions & ListOptions, command: Command) => {
        const query = buildQuery(named, options);
        await session.inNamespace(command, "existing", async ({ repository, screen }) => {
          const page = await collectPages(options, (paging) =>
            repository.getUsageSnapshots({ ...query, ...paging }),
          );
          const text = options.plot ? plotText : snapshotsText;
          screen.show(page, () =>
            page.items.length === 0 ? NONE : text(page.items, screen) + moreText(page),
          );
          noticeAge(page.countedUntil, session.environment.nowMs(), screen);
        });
      },
    );

  takeQuery(
    addVerb(usage, {
      usage: "summary",
      summary: "Adds up usage windows: total and average for each limit.",
      examples: [
        "usage summary key-1 --resource gpt-4 --start 24h",
        "usage summary --resource gpt-4 --window daily --plot",
      ],
    }),
    session,
  )
    .option("-p, --plot", "Draw a chart instead of a table.")
    .action(async (named: string | undefined, options: QueryOptions, command: Command) => {
      const query = buildQuery(named, options);
      await session.inNamespace(command, "existing", async ({ repository, screen }) => {
        const summary = await repository.getUsageSummary(query);
        const nowMs = session.environment.nowMs();
        const mark = isComplete(summary, options.window, nowMs) ? "" : MARK;
        const text = options.plot ? summaryPlotText : summaryText;
        screen.show(summary, () =>
          summary.snapshotCount === 0 ? NONE : text(summary, screen, mark) + noteText(mark),
        );
        noticeAge(summary.countedUntil, nowMs, screen);
      });
    });
}

interface QueryOptions {
  readonly entityId?: string;
  readonly resource?: string;
  readonly window: UsageWindow;
  readonly start?: Date;
  readonly end?: Date;
  readonly plot?: boolean;
}

const NONE = "No usage in these windows.\n";

/** Marks windows that are not complete. */
const MARK = " *";

function noteText(mark: string): string {
  return mark === "" ? "" : "* may still grow\n";
}

/** Usage younger than this is normal, because it is counted with a delay. */
const OLD_MS = 10 * 60_000;

/** Prints a notice if nothing was counted for a while. */
function noticeAge(countedUntil: Date | undefined, nowMs: number, screen: Screen): void {
  if (countedUntil === undefined) return;
  const ageMs = nowMs - countedUntil.getTime();
  if (ageMs <= OLD_MS) return;
  screen.notice(
    `Usage is counted until ${timeText(countedUntil)}, ${ageText(ageMs)}; anything later is ` +
      "missing. If no aggregator is running, start one: zae-limiter aggregate",
  );
}

/** Whether the last window of a summary, and so all of them, has ended and is counted. */
function isComplete(
  { maxWindowStart, countedUntil }: UsageSummary,
  window: UsageWindow,
  nowMs: number,
): boolean {
  const end = new Date(maxWindowStart ?? 0);
  if (window === "hourly") end.setUTCHours(end.getUTCHours() + 1);
  if (window === "daily") end.setUTCDate(end.getUTCDate() + 1);
  if (window === "monthly") end.setUTCMonth(end.getUTCMonth() + 1);
  return end.getTime() <= Math.min(nowMs, countedUntil?.getTime() ?? Infinity);
}

function takeQuery(command: Command, { environment }: Session): Command {
  const time = timeArgument(environment.nowMs);
  return takeEntity(command, "The entity whose usage is shown.")
    .option("-r, --resource <resource>", "The usage of this resource.")
    .addOption(
      new Option("-w, --window <window>", "The length of the windows.")
        .choices(["hourly", "daily", "monthly"])
        .default("hourly"),
    )
    .option(
      "--start <time>",
      "Windows that start at this time or later, such as 2026-11-15, or 7d for a week ago.",
      time,
    )
    .option("--end <time>", "Windows that start before this time.", time);
}

function buildQuery(named: string | undefined, options: QueryOptions): Omit<QueryOptions, "plot"> {
  const { resource, window, start, end } = options;
  const entityId = chooseEntity(named, options);
  if (entityId === undefined && resource === undefined)
    throw new UsageError("Pass an entity, --resource, or both.");
  return {
    window,
    ...(entityId !== undefined && { entityId }),
    ...(resource !== undefined && { resource }),
    ...(start !== undefined && { start }),
    ...(end !== undefined && { end }),
  };
}

function snapshotsText(
  snapshots: readonly UsageSnapshot[],
  { colours }: { readonly colours: Colours },
): string {
  const names = limitNames(snapshots);
  const rows = snapshots.map((snapshot) => [
    timeText(snapshot.windowStart) + (snapshot.complete ? "" : MARK),
    snapshot.entityId,
    snapshot.resource,
    snapshot.requests,
    ...names.map((name) => snapshot.counters[name] ?? 0),
    formatCascaded(snapshot),
  ]);
  const headers = ["Window", "Entity", "Resource", "Requests", ...names];
  // Most tables need no such column: only parents get something by cascade.
  if (snapshots.some(isCascaded)) headers.push(BY_CASCADE);
  return tableText(headers, rows, colours) + noteText(toMark(snapshots));
}

function toMark(snapshots: readonly UsageSnapshot[]): string {
  return snapshots.every(({ complete }) => complete) ? "" : MARK;
}

/** The usage of parents by the calls of their children. */
const BY_CASCADE = "By cascade";

function isCascaded({ cascaded, cascadedRequests }: UsageSnapshot | UsageSummary): boolean {
  return cascadedRequests !== 0 || Object.values(cascaded).some((amount) => amount !== 0);
}

function formatCascaded(snapshot: UsageSnapshot): string {
  const { cascaded, cascadedRequests: requests } = snapshot;
  return isCascaded(snapshot) ? amountsText({ requests, ...cascaded }) : "";
}

/** One chart for each limit. Entities and resources of the same window are added up. */
function plotText(snapshots: readonly UsageSnapshot[], { colours, columns }: Screen): string {
  const charts = ["requests", ...limitNames(snapshots)].map((name) =>
    chartText(name, buildBars(snapshots, name), { columns, colours }),
  );
  return charts.join("\n") + noteText(toMark(snapshots));
}

function buildBars(snapshots: readonly UsageSnapshot[], name: string): readonly Bar[] {
  const sums = new Map<number, { value: number; mark: string; readonly endMs: number }>();
  for (const { windowStart, windowEnd, counters, requests, complete } of snapshots) {
    const none = { value: 0, mark: "", endMs: windowEnd.getTime() };
    const sum = sums.get(windowStart.getTime()) ?? none;
    sum.value += name === "requests" ? requests : (counters[name] ?? 0);
    if (!complete) sum.mark = MARK;
    sums.set(windowStart.getTime(), sum);
  }
  const windows = [...sums].sort(([left], [right]) => left - right);
  return windows.map(([startMs, { value, mark }], index) => {
    const before = windows[index - 1];
    return {
      label: timeText(new Date(startMs)) + mark,
      value,
      gap: before !== undefined && before[1].endMs !== startMs,
    };
  });
}

function limitNames(snapshots: readonly UsageSnapshot[]): readonly string[] {
  return [...new Set(snapshots.flatMap(({ counters }) => Object.keys(counters)))].sort();
}

function summaryText(
  summary: UsageSummary,
  { colours }: { readonly colours: Colours },
  mark: string,
): string {
  const rows = Object.entries(summary.total).map(([name, total]) => [
    name,
    total,
    summary.average[name] ?? 0,
    summary.cascaded[name] ?? 0,
  ]);
  const headers = ["Limit", "Total", "Average", ...(isCascaded(summary) ? [BY_CASCADE] : [])];
  const range = `${timeText(summary.minWindowStart)} to ${timeText(summary.maxWindowStart)}${mark}`;
  const fields = fieldsText(
    [
      ["Snapshots", `${summary.snapshotCount}, of windows starting ${range}`],
      ["Requests", summary.requests],
      [BY_CASCADE, isCascaded(summary) ? summary.cascadedRequests : undefined],
    ],
    colours,
  );
  return `${tableText(headers, rows, colours)}\n${fields}`;
}

function summaryPlotText(
  { total, requests, snapshotCount }: UsageSummary,
  { colours, columns }: Screen,
  mark: string,
): string {
  const bars = Object.entries({ requests, ...total }).map(([label, value]) => ({ label, value }));
  const title = `total of ${snapshotCount} snapshots: ${amountsText({ requests })}${mark}`;
  return chartText(title, bars, { columns, colours });
}
