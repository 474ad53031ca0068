import {
  IncompatibleSchemaError,
  VERSION,
  VersionMismatchError,
  ZaeLimiterError,
  type VersionRecord,
} from "zae-limiter";
import { DynamoRepository } from "zae-limiter/dynamodb";
import type { AwsClients } from "../aws/clients.ts";
import type { Connectivity, HeartbeatState, Seen, VersionsState } from "./status-model.ts";

/** The table as a client sees it. */
export interface ClientView {
  readonly connectivity: Connectivity;
  readonly versions: Seen<VersionsState>;
  readonly heartbeat: Seen<HeartbeatState>;
}

/** Opens the table as every client does, creates nothing, and reads its version record. */
export async function viewAsClient(
  { stack, region, endpointUrl }: AwsClients,
  nowMs: () => number,
): Promise<ClientView> {
  let repository: DynamoRepository;
  try {
    repository = await DynamoRepository.open(undefined, {
      create: false,
      lambda: "ignore",
      stack,
      region,
      ...(endpointUrl !== undefined && { endpointUrl }),
    });
  } catch (error) {
    return explainFailure(error);
  }
  try {
    return await readView(repository, nowMs);
  } finally {
    await repository.close();
  }
}

async function readView(repository: DynamoRepository, nowMs: () => number): Promise<ClientView> {
  const startedMs = performance.now();
  const reachable = await repository.ping();
  const latencyMs = performance.now() - startedMs;
  if (!reachable) {
    const unknown = "the table does not answer";
    const connectivity = { reachable, reason: unknown };
    return { connectivity, versions: { unknown }, heartbeat: { unknown } };
  }
  const [record, countedUntil] = await Promise.all([
    repository.getVersionRecord(),
    repository.getCountedUntil(),
  ]);
  return {
    connectivity: { reachable, latencyMs: Math.ceil(latencyMs) },
    versions: buildVersions(record),
    heartbeat: countedUntil && { countedUntil, lagMs: nowMs() - countedUntil.getTime() },
  };
}

function buildVersions(record: VersionRecord | undefined): VersionsState {
  if (record === undefined)
    return {
      client: VERSION,
      compatible: true,
      meaning: "No version is stored in this table yet.",
    };
  const { schemaVersion: schema, lambdaVersion: lambda, clientMinVersion } = record;
  return {
    client: VERSION,
    schema,
    ...(lambda !== undefined && { lambda }),
    minimumClient: clientMinVersion,
    compatible: true,
    meaning: `Clients from ${clientMinVersion} on may use this table; this is ${VERSION}.`,
  };
}

/**
 * Reports a table that this client must not use; any other failure means that it is not reachable.
 */
function explainFailure(error: unknown): ClientView {
  if (!(error instanceof ZaeLimiterError)) throw error;
  const unknown = error.message;
  if (error instanceof IncompatibleSchemaError || error instanceof VersionMismatchError) {
    const { clientVersion: client, schemaVersion: schema, lambdaVersion: lambda } = error;
    return {
      connectivity: { reachable: true },
      versions: {
        client,
        schema,
        ...(lambda !== undefined && { lambda }),
        compatible: false,
        meaning: unknown,
      },
      heartbeat: { unknown },
    };
  }
  return {
    connectivity: { reachable: false, reason: unknown },
    versions: { unknown },
    heartbeat: { unknown },
  };
}
