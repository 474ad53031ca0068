import type { Value } from "../template/cloudformation.ts";

/** Whose policy: of programs that acquire, that manage, or that only read; of all, or of one tenant. */
export type PolicyKind =
  | "acquire-only"
  | "full-access"
  | "read-only"
  | "namespace-acquire"
  | "namespace-full-access"
  | "namespace-read-only";

/** Every kind of policy. */
export const POLICY_KINDS: readonly PolicyKind[] = [
  "acquire-only",
  "full-access",
  "read-only",
  "namespace-acquire",
  "namespace-full-access",
  "namespace-read-only",
];

/** One statement of a policy. */
export type PolicyStatement = { readonly [name: string]: Value };

/** A policy as IAM reads it. */
export type PolicyDocument = {
  readonly Version: "2012-10-17";
  readonly Statement: readonly PolicyStatement[];
};

/** The policy of a kind, for the table with this ARN: a text, or a function of the template. */
export function policyDocument(_kind: PolicyKind, _tableArn: Value): PolicyDocument {
  return { Version: "2012-10-17", Statement: [] };
}
