import type { Value } from "../cloudformation/template.ts";
import { allow, type PolicyStatement } from "./policy-statements.ts";

/**
 * The rights of the Lambda that applies declared limits: it registers a namespace, and reads and
 * writes limits, records of entities and its own state, with their audit events, in all namespaces.
 * It sees no bucket, and cannot search.
 * @example const statements = provisionerStatements(tableArn);
 */
export function provisionerStatements(tableArn: Value): readonly PolicyStatement[] {
  return [
    allow({
      sid: "Provision",
      actions: [
        "dynamodb:GetItem",
        "dynamodb:BatchGetItem",
        "dynamodb:PutItem",
        "dynamodb:UpdateItem",
        "dynamodb:DeleteItem",
        "dynamodb:ConditionCheckItem",
      ],
      resources: tableArn,
      keys: ["*/SYSTEM#", "*/RESOURCE#*", "*/ENTITY#*", "*/AUDIT#*"],
    }),
  ];
}
