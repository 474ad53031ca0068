import type { Value } from "../cloudformation/template.ts";
import { allow, below, type PolicyStatement } from "./policy-statements.ts";

/**
 * The rights of the Lambda that applies declared limits: it registers a namespace, and reads and
 * writes limits, records of entities and its own state, with their audit events, in all namespaces.
 * It reads no balance and no usage, and changes none.
 * @example const statements = provisionerStatements(tableArn);
 */
export function provisionerStatements(tableArn: Value): readonly PolicyStatement[] {
  return [
    allow({
      sid: "Provision",
      actions: [
        "dynamodb:BatchGetItem",
        "dynamodb:PutItem",
        "dynamodb:UpdateItem",
        "dynamodb:DeleteItem",
        "dynamodb:ConditionCheckItem",
      ],
      resources: tableArn,
      keys: ["*/SYSTEM#", "*/RESOURCE#*", "*/ENTITY#*", "*/AUDIT#*"],
    }),
    // Parts of its state that an interrupted apply has left. This index has keys only.
    allow({
      sid: "FindState",
      actions: ["dynamodb:Query"],
      resources: below(tableArn, "index/GSI4"),
    }),
  ];
}
