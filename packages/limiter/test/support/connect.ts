import { Connection } from "../../src/repository/dynamodb/table/connection.ts";
import { createTable } from "../../src/repository/dynamodb/table/create-table.ts";
import { type DynamoTransport } from "../../src/repository/dynamodb/transport/transport.ts";
import { MeteredTransport } from "./metered-transport.ts";
import {
  systemClock,
  systemRandom,
  type Clock,
  type Random,
} from "../../src/repository/system-clock.ts";
import { freshTableName } from "./engine.ts";
import { openTransport, type TransportName } from "./transports.ts";

/** A connection to a table of its own, with the engine's accounting. */
export interface ConnectedTable {
  readonly connection: Connection;
  readonly tableName: string;
  /** What the connection uses, without the accounting; for further processes on the same table. */
  readonly transport: DynamoTransport;
  readonly meter: MeteredTransport;
}

/** How to connect; every part has a default. */
export interface ConnectOptions {
  readonly transport?: TransportName;
  readonly tableName?: string;
  readonly requestTimeoutMs?: number;
  readonly maxAttempts?: number;
  readonly clock?: Clock;
  readonly random?: Random;
}

/** Connects without touching the table. */
export async function connect(
  endpointUrl: string,
  options: ConnectOptions = {},
): Promise<ConnectedTable> {
  const transport = await openTransport(options.transport ?? "SDK's", { endpointUrl });
  const meter = new MeteredTransport(transport, { measureCapacity: true });
  const tableName = options.tableName ?? freshTableName();
  const connection = new Connection({
    transport: meter,
    tableName,
    clock: options.clock ?? systemClock,
    random: options.random ?? systemRandom,
    // The first call of a process loads the SDK, on a machine that may be busy.
    requestTimeoutMs: options.requestTimeoutMs ?? 10_000,
    maxAttempts: options.maxAttempts ?? 3,
  });
  return { connection, tableName, transport, meter };
}

/** Connects to a new table without a stream. */
export async function connectToNewTable(
  endpointUrl: string,
  options: ConnectOptions = {},
): Promise<ConnectedTable> {
  const table = await connect(endpointUrl, options);
  await createTable(table.connection, { stream: false });
  table.meter.reset();
  return table;
}
