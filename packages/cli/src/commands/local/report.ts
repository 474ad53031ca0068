import type { Screen } from "../../output/screen.ts";
import { fieldsText } from "../../output/table.ts";
import { numberText, timeText } from "../../output/text.ts";
import { localUrl } from "./system/environment-variables.ts";
import type { AggregatorStatus } from "./system/local-aggregator.ts";
import type { LocalFolder, LocalState } from "./system/local-folder.ts";

/** A local system as commands show it, without details that do not help people. */
export interface LocalReport {
  readonly running: boolean;
  readonly stack: string;
  /** Why it does not run, if it was not asked to end. */
  readonly reason?: string;
  readonly phase?: LocalState["phase"];
  readonly endpointUrl?: string;
  readonly repository?: string;
  readonly region?: string;
  readonly engine?: string;
  readonly data?: string;
  readonly aggregator?: AggregatorStatus;
  readonly pid?: number;
  readonly startedAt?: string;
  readonly log: string;
}

/** The report on a system that runs. */
export function buildReport(state: LocalState, folder: LocalFolder): LocalReport {
  const { stack, region, phase, endpointUrl, engine, data, aggregator, startedAt } = state;
  return {
    running: true,
    stack,
    phase,
    ...(endpointUrl !== undefined && {
      endpointUrl,
      repository: localUrl({ stack, region, endpointUrl }),
    }),
    region,
    engine,
    ...(data !== undefined && { data }),
    ...(aggregator !== undefined && { aggregator }),
    pid: state.owner.pid,
    startedAt,
    log: folder.log,
  };
}

/** A report for people, one field to a line. */
export function reportText(report: LocalReport, { colours }: Screen): string {
  const { running, reason, phase, startedAt, aggregator } = report;
  const state = running ? (phase === "running" ? "yes" : "starting") : "no";
  return fieldsText(
    [
      ["Stack", report.stack],
      ["Running", reason === undefined ? state : `${state}: ${reason}`],
      ["Address", report.endpointUrl],
      ["Repository", report.repository],
      ["Engine", report.engine],
      ["Data", running ? (report.data ?? "in memory") : report.data],
      ["Aggregator", aggregator && aggregatorText(aggregator)],
      ["Pid", report.pid === undefined ? undefined : String(report.pid)],
      ["Started", startedAt && timeText(new Date(startedAt))],
      ["Log", report.log],
    ],
    colours,
  );
}

function aggregatorText({ state, lagMs = 0, counted = 0, problem }: AggregatorStatus): string {
  if (state === "starting") return "starting";
  const lag = `lag ${numberText(Math.round(lagMs / 1000))} s, ${numberText(counted)} counted`;
  return state === "running" ? `running, ${lag}` : `failing: ${problem ?? "without a reason"}`;
}
