import type { StackStatus } from "@zae-limiter/infra";
import type { BackendCapabilities } from "zae-limiter";
import type { Colours } from "./colours.ts";
import { deploymentSections, sectionText } from "./deployment.ts";
import { fieldsText, type Cell } from "./table.ts";
import { ageText, timeText } from "./text.ts";

/** The status of a repository; most of it only if it could be opened. */
export interface Found {
  readonly reachable: boolean;
  /** Why it could not be reached. */
  readonly reason?: string;
  readonly driver?: string;
  /** Where the table is, if the repository is one: the URL may leave that to the environment. */
  readonly table?: string;
  readonly region?: string;
  /** Absent when the namespace does not exist. */
  readonly namespaceId?: string;
  readonly dataVersion?: string;
  /** DynamoDB only: until when an aggregator has counted usage; absent if none ever did. */
  readonly countedUntil?: Date;
  readonly capabilities?: BackendCapabilities;
}

/** The content of `status`. */
export interface Status extends Found {
  readonly repository: string;
  readonly namespace: string;
  readonly libraryVersion: string;
  readonly nodeVersion: string;
  readonly notice?: string;
  /** DynamoDB only: the stack and everything that belongs to it. */
  readonly deployment?: StackStatus;
}

/** A status for people; in sections where there is a stack or a table. */
export function statusText(status: Status, nowMs: number, colours: Colours): string {
  const fields = repositoryFields(status, nowMs);
  const sections = status.deployment && deploymentSections(status.deployment, nowMs);
  if (sections === undefined) return fieldsText(fields, colours);
  return [["Connectivity", fields] as const, ...sections]
    .map(([title, content]) => sectionText(title, content, colours))
    .join("\n");
}

type Fields = readonly (readonly [string, Cell])[];

function repositoryFields(status: Status, nowMs: number): Fields {
  const { reachable, reason = "", namespace, namespaceId, capabilities, deployment } = status;
  const missing = reachable && namespaceId === undefined ? " (does not exist)" : "";
  const latencyMs = deployment?.connectivity.latencyMs;
  const latency = latencyMs === undefined ? "" : `, in ${latencyMs} ms`;
  // The sections say more about these.
  const isBrief = deployment !== undefined && status.table !== undefined;
  return [
    ["Repository", status.repository],
    ["Reachable", reachable ? `yes${latency}` : `no: ${reason}`],
    ["Driver", status.driver],
    ["Table", status.table],
    ["Region", status.region],
    ["Namespace", namespace + missing],
    ["Data version", isBrief ? undefined : status.dataVersion],
    ["Aggregator", isBrief ? undefined : status.table && aggregatorText(status, nowMs)],
    ["Can do", capabilities && abilities(capabilities, true)],
    ["Cannot do", capabilities && abilities(capabilities, false)],
    ["zae-limiter", status.libraryVersion],
    ["Node", status.nodeVersion],
    ["Notice", status.notice],
  ];
}

function aggregatorText({ countedUntil }: Status, nowMs: number): string {
  if (countedUntil === undefined)
    return "has never counted usage; to start one: zae-limiter aggregate";
  return `counted until ${timeText(countedUntil)}, ${ageText(nowMs - countedUntil.getTime())}`;
}

/** What each capability is for, in the words of the command line. */
const ABILITIES: Readonly<Record<keyof BackendCapabilities, string>> = {
  auditLogging: "audit",
  usageSnapshots: "usage",
  infrastructureManagement: "manage infrastructure",
  changeStreams: "change streams",
  batchOperations: "batches",
};

function abilities(capabilities: BackendCapabilities, wanted: boolean): string {
  return Object.entries(ABILITIES)
    .filter(([name]) => capabilities[name as keyof BackendCapabilities] === wanted)
    .map(([, ability]) => ability)
    .join(", ");
}
