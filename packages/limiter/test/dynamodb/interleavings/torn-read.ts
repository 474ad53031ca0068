/*
 * A batch is read or written item by item, each at some moment of its own: what is read of two
 * shards need never have been true at once, and others act between two statements.
 */
import { listStatements } from "../../support/written-items.ts";
import type { AttributeMap } from "../../../src/repository/dynamodb/transport/attribute-values.ts";
import type { EngineReply, HeldCall } from "./gate.ts";
import type { WatchedTable } from "./watched-table.ts";

interface BatchRead {
  readonly RequestItems: Readonly<Record<string, { readonly Keys: readonly AttributeMap[] }>>;
}

type BatchAnswer = {
  readonly Responses?: Readonly<Record<string, readonly AttributeMap[]>> | readonly object[];
};

/** Whether a call reads or writes several items, each for itself. */
export function isTearable({ operation, input }: HeldCall): boolean {
  if (operation === "BatchExecuteStatement") return true;
  return operation === "BatchGetItem" && listKeys(input as BatchRead).length > 1;
}

/** Does the first of them. */
export async function firstHalf(table: WatchedTable, call: HeldCall): Promise<object> {
  const reply = await table.apply(buildPart(call, (index, count) => index < count / 2));
  if (!reply.ok) throw reply.error;
  return reply.output;
}

/** Does the others, and returns all replies. */
export async function secondHalf(table: WatchedTable, call: HeldCall): Promise<EngineReply> {
  const reply = await table.apply(buildPart(call, (index, count) => index >= count / 2));
  if (!reply.ok) return reply;
  const [first, second] = [call.firstHalf!, reply.output].map(
    (part) => (part as BatchAnswer).Responses ?? {},
  );
  if (Array.isArray(first) && Array.isArray(second))
    return { ok: true, output: { ...reply.output, Responses: [...first, ...second] } };
  const [tableName] = Object.keys((call.input as BatchRead).RequestItems);
  const items = [first, second].flatMap(
    (responses) => (responses as Record<string, readonly AttributeMap[]>)[tableName!] ?? [],
  );
  return { ok: true, output: { ...reply.output, Responses: { [tableName!]: items } } };
}

function listKeys({ RequestItems }: BatchRead): readonly AttributeMap[] {
  return Object.values(RequestItems)[0]!.Keys;
}

function buildPart(call: HeldCall, isIn: (index: number, count: number) => boolean): HeldCall {
  const some = <T>(all: readonly T[]): readonly T[] =>
    all.filter((_, index) => isIn(index, all.length));
  if (call.operation === "BatchExecuteStatement")
    return {
      ...call,
      input: { ...call.input, Statements: some(listStatements(call.input)) },
      decisions: some(call.decisions),
    };
  const [[tableName, options]] = Object.entries((call.input as BatchRead).RequestItems) as [
    [string, object],
  ];
  const Keys = some(listKeys(call.input as BatchRead));
  return {
    ...call,
    input: { ...call.input, RequestItems: { [tableName]: { ...options, Keys } } },
  };
}
