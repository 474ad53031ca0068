import type { AttributeMap } from "../../../src/repository/dynamodb/transport/attribute-values.ts";
import { listStatements, type RequestStatement } from "../../support/written-items.ts";
import type { HeldCall } from "./gate.ts";

/** A request as a person reads it: with names and values in their places. */
export function requestText({ operation, input }: Pick<HeldCall, "operation" | "input">): string {
  const { TransactItems: parts } = input as {
    readonly TransactItems?: readonly Record<string, object>[];
  };
  if (operation === "BatchExecuteStatement")
    return listStatements(input).map(statementText).join(" | ");
  const writes =
    parts === undefined
      ? [[operation, input] as const]
      : parts.flatMap((part) => Object.entries(part));
  return writes.map(([kind, write]) => `${kind} ${writeText(write)}`).join(" | ");
}

function statementText({ Statement, Parameters = [] }: RequestStatement): string {
  const values = Parameters as readonly AttributeMap[string][];
  let position = 0;
  return Statement.replaceAll("?", () => valueText(values[position++]));
}

interface Write {
  readonly Key?: AttributeMap;
  readonly Item?: AttributeMap;
  readonly UpdateExpression?: string;
  readonly ConditionExpression?: string;
  readonly ExpressionAttributeNames?: Readonly<Record<string, string>>;
  readonly ExpressionAttributeValues?: AttributeMap;
}

function writeText(write: Write): string {
  const fill = (text = ""): string =>
    text
      .replaceAll(/#\w+/g, (alias) => write.ExpressionAttributeNames?.[alias] ?? alias)
      .replaceAll(/:\w+/g, (alias) => valueText(write.ExpressionAttributeValues?.[alias]));
  const key = write.Key ?? write.Item;
  if (key === undefined) return "";
  const item = write.Item === undefined ? "" : ` ${itemText(write.Item)}`;
  return `${valueText(key["PK"])}${item} ${fill(write.UpdateExpression)} IF ${fill(write.ConditionExpression)}`;
}

function itemText(item: AttributeMap): string {
  return Object.entries(item)
    .filter(([name]) => !/^(?:GSI|PK|SK|entity_id|resource|cascade|parent_id)/.test(name))
    .map(([name, value]) => `${name}=${valueText(value)}`)
    .join(" ");
}

function valueText(value: AttributeMap[string] | undefined): string {
  return value === undefined ? "?" : String(Object.values(value)[0]);
}
