import type { DynamoDB } from "@aws-sdk/client-dynamodb";
import type { DynamoTransport } from "zae-limiter/dynamodb";
import { BillMeter } from "../bill.ts";
import type { Contestant } from "./contestant.ts";
import type { Selection } from "../selection.ts";
import { bareTable, floor } from "./floor.ts";
import { original } from "./original.ts";
import { ours, type OursOptions } from "./ours.ts";
import { peers } from "./peer.ts";
import { openLeanTransport, openSdkClient } from "../transports.ts";

/** The contestants that are available, and those that are not. */
export interface Field {
  readonly contestants: readonly Contestant[];
  /** Who does not take part, and why. */
  readonly absent: readonly string[];
  close(): Promise<void>;
}

const RAW_TABLE = "bench-raw";
const LEAN_RAW_TABLE = "bench-raw-lean";
const PEER_TABLE = "bench-peer";

/**
 * Opens the wanted contestants on one engine. All that use the SDK share one client. The original
 * takes part if it is installed already, or may be.
 */
export async function openField(
  endpointUrl: string,
  { against, on, mayInstall }: Pick<Selection, "against" | "on"> & { readonly mayInstall: boolean },
): Promise<Field> {
  const contestants: Contestant[] = [];
  const absent: string[] = [];
  const client = openSdkClient({ endpointUrl });
  const lean = await openLeanTransport({ endpointUrl });
  const close = async (): Promise<void> => {
    for (const contestant of contestants) await contestant.close();
    lean.close();
    client.destroy();
  };
  try {
    await createTables(client);
    const isWanted = ({ id }: Contestant): boolean =>
      id.startsWith("ours") || [...against].some((rival) => id.startsWith(rival));
    if (on.has("sdk")) contestants.push(...(await onSdk(client)).filter(isWanted));
    if (on.has("lean")) contestants.push(...(await onLean(lean)).filter(isWanted));
    if (against.has("original")) {
      const python = await original(endpointUrl, { mayInstall });
      if ("missing" in python) absent.push(`the original: ${python.missing}`);
      else contestants.push(python);
    }
    return { contestants, absent, close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function onSdk(client: DynamoDB): Promise<readonly Contestant[]> {
  const meter = new BillMeter();
  meter.watch(client);
  return [
    floor({
      id: "floor-sdk",
      name: "floor: conditional UpdateItem, SDK",
      tableName: RAW_TABLE,
      meter,
      put: async (input) => client.putItem(input),
      update: async (input) => client.updateItem(input),
    }),
    ...(await bothOfOurs("ours-sdk", { name: "zae-limiter, SDK", meter, connection: { client } })),
    ...peers({ client, tableName: PEER_TABLE, meter }),
  ];
}

async function onLean(lean: DynamoTransport): Promise<readonly Contestant[]> {
  const meter = new BillMeter();
  const transport = meter.wrap(lean);
  const call = async (operation: string, input: object): Promise<object> =>
    transport.call(operation, input, { signal: new AbortController().signal });
  return [
    floor({
      id: "floor-lean",
      name: "floor: conditional UpdateItem, lean",
      tableName: LEAN_RAW_TABLE,
      meter,
      put: async (input) => call("PutItem", input),
      update: async (input) => call("UpdateItem", input),
    }),
    ...(await bothOfOurs("ours-lean", {
      name: "zae-limiter, lean",
      meter,
      connection: { transport },
    })),
  ];
}

/** Ours as it is by default, and with a request for every write. */
async function bothOfOurs(
  id: "ours-sdk" | "ours-lean",
  options: Pick<OursOptions, "name" | "meter" | "connection">,
): Promise<readonly Contestant[]> {
  return [
    await ours({ ...options, id, stack: `bench-${id}`, shareRequests: true }),
    await ours({
      ...options,
      id: `${id}-unshared`,
      name: `${options.name}, sharing off`,
      stack: `bench-${id}-unshared`,
      shareRequests: false,
    }),
  ];
}

async function createTables(client: DynamoDB): Promise<void> {
  for (const tableName of [RAW_TABLE, LEAN_RAW_TABLE, PEER_TABLE])
    await client.createTable(bareTable(tableName));
}
