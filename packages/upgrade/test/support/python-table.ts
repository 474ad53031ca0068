import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { getKey } from "../../../limiter/src/repository/dynamodb/table/batch.ts";
import type { AttributeMap } from "../../../limiter/src/repository/dynamodb/transport/attribute-values.ts";
import type { DynamoTransport } from "../../../limiter/src/repository/dynamodb/transport/transport.ts";
import { freshTableName } from "../../../limiter/test/support/engine.ts";

/** A table as a release of the Python zae-limiter left it (tools/python-tables). */
export interface PythonTable {
  readonly release: string;
  /** When the release was asked for `available`. */
  readonly askedAtMs: number;
  /** What it answered, by entity and resource. */
  readonly available: Readonly<Record<string, Readonly<Record<string, number>>>>;
  readonly table: object;
  readonly items: readonly AttributeMap[];
}

/** Tables that were made anew may stand in for those in the repository. */
const folder =
  process.env["ZAEL_PYTHON_TABLES"] ??
  fileURLToPath(new URL("../fixtures/python-tables", import.meta.url));

/** Reads the table of a release. */
export function pythonTable(release: string): PythonTable {
  const lines = readFileSync(join(folder, `${release}.jsonl`), "utf8")
    .trimEnd()
    .split("\n");
  const [head, ...items] = lines.map((line) => JSON.parse(line) as never);
  return { ...(head as unknown as Omit<PythonTable, "items">), items };
}

/** Creates a table of an engine with everything that a release left, and returns its name. */
export async function loadPythonTable(
  transport: DynamoTransport,
  { table, items }: PythonTable,
): Promise<string> {
  const TableName = freshTableName();
  await send(transport, "CreateTable", { TableName, BillingMode: "PAY_PER_REQUEST", ...table });
  await putItems(transport, TableName, items);
  return TableName;
}

/** Puts items into a table. */
export async function putItems(
  transport: DynamoTransport,
  TableName: string,
  items: readonly AttributeMap[],
): Promise<void> {
  for (let start = 0; start < items.length; start += 25) {
    const writes = items.slice(start, start + 25).map((Item) => ({ PutRequest: { Item } }));
    await send(transport, "BatchWriteItem", { RequestItems: { [TableName]: writes } });
  }
}

/** All items of a table, by their keys. */
export async function listItems(
  transport: DynamoTransport,
  TableName: string,
): Promise<ReadonlyMap<string, AttributeMap>> {
  const { Items = [] } = await send<{ Items?: readonly AttributeMap[] }>(transport, "Scan", {
    TableName,
    ConsistentRead: true,
  });
  const entries = Items.map((item) => [`${getKey(item).PK} ${getKey(item).SK}`, item] as const);
  return new Map(entries.sort(([left], [right]) => (left < right ? -1 : 1)));
}

async function send<Output extends object>(
  transport: DynamoTransport,
  operation: string,
  input: object,
): Promise<Output> {
  return (await transport.call(operation, input, {
    signal: AbortSignal.timeout(20_000),
  })) as Output;
}
