import { policyDocument, type PolicyKind } from "../policies/policy-document.ts";
import { ref, sub, when, type Resources } from "../cloudformation/template.ts";
import { POLICY_SUFFIXES } from "./parameters.ts";
import { TABLE_ARN } from "./table.ts";

type Part = keyof typeof POLICY_SUFFIXES;

const KINDS: Readonly<Record<Part, PolicyKind>> = {
  AcquireOnly: "acquire-only",
  FullAccess: "full-access",
  ReadOnly: "read-only",
  NamespaceAcquire: "namespace-acquire",
  NamespaceFullAccess: "namespace-full-access",
  NamespaceReadOnly: "namespace-read-only",
};

/**
 * The policies that are attached to what uses the table. They have no description: IAM cannot
 * change one, so a better wording would replace the policy.
 */
export function buildManagedPolicies(): Resources {
  return Object.fromEntries(
    (Object.keys(KINDS) as readonly Part[]).map((part) => [
      `${part}Policy`,
      {
        Type: "AWS::IAM::ManagedPolicy",
        Condition: "DeployIAM",
        Properties: {
          ManagedPolicyName: when(
            `Has${part}PolicyName`,
            ref(`${part}PolicyName`),
            sub(`\${AWS::StackName}-${POLICY_SUFFIXES[part]}`),
          ),
          PolicyDocument: policyDocument(KINDS[part], TABLE_ARN),
        },
      },
    ]),
  );
}
