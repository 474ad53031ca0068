/*
 * What a statement of PartiQL does to an item, as far as buckets use them: it is translated
 * to an update expression, which expression-evaluator.ts carries out. It shares nothing with the
 * code that makes statements.
 */
import type {
  AttributeMap,
  AttributeValue,
} from "../../src/repository/dynamodb/transport/attribute-values.ts";
import { update } from "./expression-evaluator.ts";
import type { RequestStatement } from "./written-items.ts";

/** An assignment: of a value, or of a sum with a value. */
const ASSIGNMENT = /"([^"]+)"=(?:(?:"[^"]+"|\w+)(\+))?(:\w+)/g;

/** The item after the statement, or why it was not carried out, as DynamoDB calls it. */
export function runStatement(
  item: AttributeMap,
  { Statement: text, Parameters = [] }: RequestStatement,
): AttributeMap | "ConditionalCheckFailed" | "ValidationError" {
  const values: Record<string, AttributeValue> = {};
  let position = 0;
  const numbered = text.replaceAll("?", () => {
    const alias = `:p${position}`;
    values[alias] = Parameters[position++] as AttributeValue;
    return alias;
  });
  const [, changes, conditions] =
    /^UPDATE "[^"]+" (.*?) WHERE (.*) RETURNING (?:ALL|MODIFIED) NEW \*$/.exec(numbered) ?? [];
  if (changes === undefined || conditions === undefined) throw new Error(`Not understood: ${text}`);
  const [assignments = "", removed] = changes.split(/ ?\bREMOVE /);
  const parts = [...assignments.matchAll(ASSIGNMENT)];
  const sums = parts.filter(([, , plus]) => plus !== undefined);
  const ofKind = (isSum: boolean): string =>
    (isSum ? sums : parts.filter((part) => !sums.includes(part)))
      .map(([, name, , value]) => `${name}${isSum ? " " : "="}${value}`)
      .join(",");
  const next = update(item, {
    UpdateExpression: [
      ofKind(false) && `SET ${ofKind(false)}`,
      ofKind(true) && `ADD ${ofKind(true)}`,
      removed && `REMOVE ${removed.replaceAll('"', "")}`,
    ]
      .filter((clause) => clause)
      .join(" "),
    ConditionExpression: conditions
      .replaceAll(/("[^"]+") IS MISSING/g, "attribute_not_exists($1)")
      .replaceAll('"', ""),
    ExpressionAttributeValues: values,
  });
  if (next === undefined) return "ConditionalCheckFailed";
  // PartiQL has no default for what a sum adds to.
  return sums.some(([, name]) => item[name!] === undefined) ? "ValidationError" : next;
}
