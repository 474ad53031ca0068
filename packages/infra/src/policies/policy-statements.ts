import type { Value } from "../cloudformation/template.ts";

/** One statement of a policy. */
export type PolicyStatement = { readonly [name: string]: Value };

/** What a statement allows, and on what. */
export interface Grant {
  readonly sid: string;
  readonly actions: readonly string[];
  readonly resources: Value;
  /** Patterns for the partition keys; without them, every item and a call without any key. */
  readonly keys?: readonly string[];
}

/**
 * A statement that allows. `ForAllValues` also holds for a request that has no key at all, such as
 * a `Scan`; `Null` therefore requires that there is one.
 */
export function allow({ sid, actions, resources, keys }: Grant): PolicyStatement {
  return {
    Sid: sid,
    Effect: "Allow",
    Action: actions,
    Resource: resources,
    ...(keys !== undefined && {
      Condition: {
        "ForAllValues:StringLike": { "dynamodb:LeadingKeys": keys },
        Null: { "dynamodb:LeadingKeys": "false" },
      },
    }),
  };
}

/** An ARN below another one, which may be a function of the template. */
export function below(arn: Value, path: string): Value {
  return typeof arn === "string" ? `${arn}/${path}` : { "Fn::Join": ["/", [arn, path]] };
}
