/*
 * A batch is read item by item, each as it is at some moment of its own: what is read of two shards
 * need never have been true at once.
 */
import type { AttributeMap } from "../../../src/repository/dynamodb/transport/attribute-values.ts";
import type { EngineReply, HeldCall } from "./gate.ts";
import type { WatchedTable } from "./watched-table.ts";

interface BatchRead {
  readonly RequestItems: Readonly<Record<string, { readonly Keys: readonly AttributeMap[] }>>;
}

interface BatchAnswer {
  readonly Responses?: Readonly<Record<string, readonly AttributeMap[]>>;
}

/** Whether a call reads several items. */
export function isTearable({ operation, input }: HeldCall): boolean {
  return operation === "BatchGetItem" && keysOf(input as BatchRead).length > 1;
}

/** Reads the first of several items. */
export async function firstHalf(table: WatchedTable, call: HeldCall): Promise<object> {
  const keys = keysOf(call.input as BatchRead);
  const reply = await table.apply(reading(call, keys.slice(0, Math.ceil(keys.length / 2))));
  if (!reply.ok) throw reply.error;
  return reply.output;
}

/** Reads the others, and returns all of them. */
export async function secondHalf(table: WatchedTable, call: HeldCall): Promise<EngineReply> {
  const keys = keysOf(call.input as BatchRead);
  const reply = await table.apply(reading(call, keys.slice(Math.ceil(keys.length / 2))));
  if (!reply.ok) return reply;
  const [tableName] = Object.keys((call.input as BatchRead).RequestItems);
  const items = [call.firstHalf!, reply.output].flatMap(
    (part) => (part as BatchAnswer).Responses?.[tableName!] ?? [],
  );
  return { ok: true, output: { ...reply.output, Responses: { [tableName!]: items } } };
}

function keysOf({ RequestItems }: BatchRead): readonly AttributeMap[] {
  return Object.values(RequestItems)[0]!.Keys;
}

function reading(call: HeldCall, keys: readonly AttributeMap[]): HeldCall {
  const [[tableName, options]] = Object.entries((call.input as BatchRead).RequestItems) as [
    [string, object],
  ];
  return {
    ...call,
    input: { ...call.input, RequestItems: { [tableName]: { ...options, Keys: keys } } },
  };
}
