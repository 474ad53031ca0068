import { VERSION } from "../../core/version.ts";
import type { VersionRecord } from "../repository.ts";
import {
  judgeCompatibility,
  type Compatibility,
  type TableVersions,
} from "./items/compatibility.ts";
import { namespaceIdPrefix, systemPartition, TABLE_NAMESPACE, versionKey } from "./items/keys.ts";
import { LOST_VERSION } from "./items/schema-version.ts";
import { openConnection } from "./opening/open-connection.ts";
import type { DynamoOptions } from "./opening/options.ts";
import { parseVersion } from "./records.ts";
import { marshalKey, queryPage } from "./table/batch.ts";
import type { Connection } from "./table/connection.ts";
import type { AttributeMap } from "./transport/attribute-values.ts";

/** Where a table is. */
export type TablePlace = Pick<
  DynamoOptions,
  "stack" | "region" | "endpointUrl" | "client" | "transport" | "clock"
>;

/** The versions of a table, and whether this library may use it. */
export interface TableCheck extends TableVersions, Compatibility {}

/**
 * Reads the versions of a table, and returns whether this library may use it; writes nothing.
 * @example const { state, message } = await checkTable({ stack: "limits" });
 */
export async function checkTable(place: TablePlace = {}): Promise<TableCheck> {
  return withConnection(place, async (connection) => judgeVersion(await readVersion(connection)));
}

/** What a version record says, and what follows from it. */
export function judgeVersion(record: VersionRecord | undefined): TableCheck {
  const versions = {
    clientVersion: VERSION,
    schemaVersion: record?.schemaVersion,
    lambdaVersion: record?.lambdaVersion,
    clientMinVersion: record?.clientMinVersion,
  };
  return { ...versions, ...judgeCompatibility(versions) };
}

/** The version record of a table; undefined for a new one, which has no namespaces either. */
export async function readVersion(connection: Connection): Promise<VersionRecord | undefined> {
  const { Item } = await connection.repeat<{ Item?: AttributeMap }>("GetItem", {
    Key: marshalKey(versionKey()),
    ConsistentRead: true,
  });
  if (Item !== undefined) return parseVersion(Item);
  const { items } = await queryPage(connection, {
    partition: systemPartition(TABLE_NAMESPACE),
    range: { beginsWith: namespaceIdPrefix },
    limit: 1,
  });
  return items.length === 0 ? undefined : LOST_VERSION;
}

/** Connects to a table for the time of some work. */
export async function withConnection<Result>(
  { stack, region, endpointUrl, client, transport, clock }: TablePlace,
  work: (connection: Connection) => Promise<Result>,
): Promise<Result> {
  const { connection } = await openConnection(undefined, {
    ...(stack !== undefined && { stack }),
    ...(region !== undefined && { region }),
    ...(endpointUrl !== undefined && { endpointUrl }),
    ...(client !== undefined && { client }),
    ...(transport !== undefined && { transport }),
    ...(clock !== undefined && { clock }),
  });
  try {
    return await work(connection);
  } finally {
    connection.close();
  }
}
