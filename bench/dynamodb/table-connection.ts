import { InfrastructureNotFoundError } from "zae-limiter";
import { checkTable, DynamoRepository } from "zae-limiter/dynamodb";
import { BillMeter } from "./bill.ts";
import type { OursOptions } from "./contestants/ours.ts";
import type { TableOptions, TransportName } from "./selection.ts";
import { openLeanTransport, openSdkClient } from "./transports.ts";

/** A transport to a table, with a meter on it. */
export interface TableConnection extends Pick<OursOptions, "connection" | "meter"> {
  /** One bare read of an item that does not exist. */
  readonly read: () => Promise<void>;
  readonly close: () => void;
}

/** Connects as ours does, with the default chain of credentials. */
export async function connect(
  transport: TransportName,
  table: TableOptions,
): Promise<TableConnection> {
  const meter = new BillMeter();
  const key = { PK: { S: "benchmark" }, SK: { S: "#NONE" } };
  const input = { TableName: table.name, Key: key, ConsistentRead: true };
  if (transport === "sdk") {
    const client = openSdkClient(table);
    meter.watch(client);
    const read = async (): Promise<void> => void (await client.getItem(input));
    return { connection: { client }, meter, read, close: () => client.destroy() };
  }
  const lean = meter.wrap(await openLeanTransport(table));
  const { signal } = new AbortController();
  const read = async (): Promise<void> => void (await lean.call("GetItem", input, { signal }));
  return { connection: { transport: lean }, meter, read, close: () => lean.close() };
}

/** Makes sure that the table exists; returns it if it was created for the benchmark. */
export async function findOrCreateTable(
  table: TableOptions,
): Promise<DynamoRepository | undefined> {
  const { name, region, endpointUrl, create } = table;
  const place = { stack: name, ...(region && { region }), ...(endpointUrl && { endpointUrl }) };
  const found = await checkTable(place).catch((error: unknown) => {
    if (create && error instanceof InfrastructureNotFoundError) return undefined;
    throw error;
  });
  if (found === undefined)
    return DynamoRepository.open(undefined, { ...place, provisioning: "table", stream: false });
  if (create)
    throw new Error(`Table ${name} exists, and would be deleted at the end: leave out --create.`);
  if (found.state !== "compatible") throw new Error(found.message);
  return undefined;
}
