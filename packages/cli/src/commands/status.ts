import type { Command } from "commander";
import type { StackStatus } from "@zae-limiter/infra";
import { NamespaceNotFoundError, VERSION, ZaeLimiterError, type Repository } from "zae-limiter";
import { tableOptions, withoutCredentials } from "zae-limiter/open";
import { EXIT, toExitCode } from "../exit.ts";
import { statusText, type Found, type Status } from "../output/status.ts";
import type { Session } from "./support/session.ts";
import { addVerb } from "./support/verb.ts";

/** Adds `status`, which shows what the command line works on and whether it can be reached. */
export function addStatusCommand(program: Command, session: Session): void {
  addVerb(program, {
    usage: "status",
    summary:
      "Shows which repository, driver and namespace commands use, their versions, and what the " +
      "repository can do; on DynamoDB also stack, table, aggregator, functions and roles. Without " +
      "a repository it is about the stack zae-limiter. Exits 1 when something is wrong.",
    examples: ["status", "status --json", "status --stack my-stack --region eu-west-1"],
  }).action(async (_options: object, command: Command) => {
    const url = session.getStatusUrl(command);
    const [found, deployment] = await Promise.all([
      inspectRepository(session, command, url),
      readDeployment(session, url),
    ]);
    const { nodeVersion, nodeNotice } = session.environment;
    const notice = nodeNotice();
    const status: Status = {
      repository: withoutCredentials(url),
      namespace: session.getNamespaceName(command),
      ...found,
      libraryVersion: VERSION,
      nodeVersion,
      ...(notice !== undefined && { notice }),
      ...(deployment !== undefined && { deployment }),
    };
    const screen = session.screen(command);
    const nowMs = session.environment.nowMs();
    screen.show(status, () => statusText(status, nowMs, screen.colours));
    const isHealthy = status.reachable && (deployment?.problems ?? []).length === 0;
    session.exitWith(isHealthy ? EXIT.done : EXIT.failed);
  });
}

/** A wrong command line is an error here too; any other failure is a status. */
async function inspectRepository(session: Session, command: Command, url: string): Promise<Found> {
  let found: Found = { reachable: false };
  try {
    await session.inRepository(
      command,
      "existing",
      async ({ repository }) => {
        found = await inspectNamespace(repository, session.getNamespaceName(command));
      },
      { url },
    );
    return found;
  } catch (error) {
    if (!(error instanceof ZaeLimiterError) || toExitCode(error) === EXIT.wrongUsage) throw error;
    return { ...found, reachable: false, reason: error.message };
  }
}

/** The same for the stack. If it cannot be reached, neither can the repository, which says why. */
async function readDeployment(session: Session, url: string): Promise<StackStatus | undefined> {
  if (!url.startsWith("dynamodb:")) return undefined;
  const { nowMs } = session.environment;
  const { stackStatus } = await import("@zae-limiter/infra");
  try {
    return await stackStatus({ ...tableOptions(url), nowMs });
  } catch (error) {
    if (!(error instanceof ZaeLimiterError)) throw error;
    return undefined;
  }
}

async function inspectNamespace(repository: Repository, namespace: string): Promise<Found> {
  if (!(await repository.ping())) return { reachable: false, reason: "It does not answer." };
  const namespaceId = await findNamespaceId(repository, namespace);
  return {
    reachable: true,
    ...(await describeStore(repository)),
    ...(namespaceId !== undefined && { namespaceId }),
    capabilities: repository.capabilities,
  };
}

async function findNamespaceId(repository: Repository, name: string): Promise<string | undefined> {
  try {
    return (await repository.namespace(name)).namespaceId;
  } catch (error) {
    if (error instanceof NamespaceNotFoundError) return undefined;
    throw error;
  }
}

/** The driver, the place of the data, and the version of their format. */
export async function describeStore(
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
