import type { Command } from "commander";
import {
  NamespaceNotFoundError,
  VERSION,
  ZaeLimiterError,
  type BackendCapabilities,
  type Repository,
} from "zae-limiter";
import { EXIT, exitCodeOf } from "../exit.ts";
import type { Colours } from "../output/colours.ts";
import { fieldsText } from "../output/table.ts";
import { ageText, timeText } from "../output/text.ts";
import type { Session } from "./support/session.ts";
import { addVerb } from "./support/verb.ts";

/** Adds `status`, which shows what the command line works on and whether it can be reached. */
export function addStatusCommand(program: Command, session: Session): void {
  addVerb(program, {
    usage: "status",
    summary:
      "Shows which repository, driver and namespace commands use, their versions, " +
      "and what the repository can do. Exits 1 when it cannot be reached.",
    examples: ["status", "status --json"],
  }).action(async (_options: object, command: Command) => {
    const found = await foundOf(session, command);
    const { nodeVersion, nodeNotice } = session.environment;
    const notice = nodeNotice();
    const status: Status = {
      repository: session.urlOf(command),
      namespace: session.namespaceNameOf(command),
      ...found,
      libraryVersion: VERSION,
      nodeVersion,
      ...(notice !== undefined && { notice }),
    };
    const screen = session.screen(command);
    const nowMs = session.environment.nowMs();
    screen.show(status, () => statusText(status, nowMs, screen.colours));
    session.exitWith(status.reachable ? EXIT.done : EXIT.failed);
  });
}

/** What is known of a repository; most of it only when it could be opened. */
interface Found {
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

interface Status extends Found {
  readonly repository: string;
  readonly namespace: string;
  readonly libraryVersion: string;
  readonly nodeVersion: string;
  readonly notice?: string;
}

/** A command line that is written wrongly is an error here too; whatever else fails is a status. */
async function foundOf(session: Session, command: Command): Promise<Found> {
  let found: Found = { reachable: false };
  try {
    await session.inRepository(command, "existing", async ({ repository }) => {
      found = await inspected(repository, session.namespaceNameOf(command));
    });
    return found;
  } catch (error) {
    if (!(error instanceof ZaeLimiterError) || exitCodeOf(error) === EXIT.wrongUsage) throw error;
    return { ...found, reachable: false, reason: error.message };
  }
}

async function inspected(repository: Repository, namespace: string): Promise<Found> {
  if (!(await repository.ping())) return { reachable: false, reason: "It does not answer." };
  const namespaceId = await namespaceIdOf(repository, namespace);
  return {
    reachable: true,
    ...(await storeOf(repository)),
    ...(namespaceId !== undefined && { namespaceId }),
    capabilities: repository.capabilities,
  };
}

async function namespaceIdOf(repository: Repository, name: string): Promise<string | undefined> {
  try {
    return (await repository.namespace(name)).namespaceId;
  } catch (error) {
    if (error instanceof NamespaceNotFoundError) return undefined;
    throw error;
  }
}

/** What reads and writes the data, where they are, and the version of their format. */
async function storeOf(
  repository: Repository,
): Promise<Pick<Found, "driver" | "table" | "region" | "dataVersion" | "countedUntil">> {
  const { SqliteRepository } = await import("zae-limiter/sqlite");
  if (repository instanceof SqliteRepository)
    return { driver: repository.driver, dataVersion: String(repository.schemaVersion) };
  const { DynamoRepository } = await import("zae-limiter/dynamodb");
  if (!(repository instanceof DynamoRepository)) return { driver: "none (in this process)" };
  const { tableName: table, region } = repository;
  const version = await repository.getVersionRecord();
  const countedUntil = await repository.getCountedUntil();
  return {
    driver: "@aws-sdk/client-dynamodb",
    table,
    region,
    ...(version !== undefined && { dataVersion: version.schemaVersion }),
    ...(countedUntil !== undefined && { countedUntil }),
  };
}

/** What each capability is for, in the words of the command line. */
const ABILITIES: Readonly<Record<keyof BackendCapabilities, string>> = {
  auditLogging: "audit",
  usageSnapshots: "usage",
  infrastructureManagement: "manage infrastructure",
  changeStreams: "change streams",
  batchOperations: "batches",
};

function statusText(status: Status, nowMs: number, colours: Colours): string {
  const { reachable, reason = "", namespace, namespaceId, capabilities } = status;
  const missing = reachable && namespaceId === undefined ? " (does not exist)" : "";
  return fieldsText(
    [
      ["Repository", status.repository],
      ["Reachable", reachable ? "yes" : `no: ${reason}`],
      ["Driver", status.driver],
      ["Table", status.table],
      ["Region", status.region],
      ["Namespace", namespace + missing],
      ["Data version", status.dataVersion],
      ["Aggregator", status.table && aggregatorText(status.countedUntil, nowMs)],
      ["Can do", capabilities && abilities(capabilities, true)],
      ["Cannot do", capabilities && abilities(capabilities, false)],
      ["zae-limiter", status.libraryVersion],
      ["Node", status.nodeVersion],
      ["Notice", status.notice],
    ],
    colours,
  );
}

function aggregatorText(countedUntil: Date | undefined, nowMs: number): string {
  if (countedUntil === undefined)
    return "has never counted usage; to start one: zae-limiter aggregate";
  return `counted until ${timeText(countedUntil)}, ${ageText(nowMs - countedUntil.getTime())}`;
}

function abilities(capabilities: BackendCapabilities, wanted: boolean): string {
  return Object.entries(ABILITIES)
    .filter(([name]) => capabilities[name as keyof BackendCapabilities] === wanted)
    .map(([, ability]) => ability)
    .join(", ");
}
