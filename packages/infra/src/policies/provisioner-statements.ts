import type { Value } from "../cloudformation/template.ts";
import { allow, type PolicyStatement } from "./policy-statements.ts";

/** Of all namespaces: the registry and the state, defaults of resources, entities. */
const KEYS = ["*/SYSTEM#", "*/RESOURCE#*", "*/ENTITY#*"];

/**
 * The rights of the Lambda that applies declared limits: it registers a namespace, and reads and
 * writes limits, records of entities and its own state, in all namespaces. It adds audit events,
 * and can neither read nor delete any. It sees no bucket, so no balance.
 * @example const statements = provisionerStatements(tableArn);
 */
export function provisionerStatements(tableArn: Value): readonly PolicyStatement[] {
  return [
    allow({
      sid: "ReadAndChange",
      actions: [
        "dynamodb:BatchGetItem",
        "dynamodb:UpdateItem",
        "dynamodb:DeleteItem",
        "dynamodb:ConditionCheckItem",
      ],
      resources: tableArn,
      keys: KEYS,
    }),
    // One transaction puts a change and its audit event, so one statement allows both.
    allow({
      sid: "Put",
      actions: ["dynamodb:PutItem"],
      resources: tableArn,
      keys: [...KEYS, "*/AUDIT#*"],
    }),
  ];
}
