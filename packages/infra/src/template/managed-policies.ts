import { policyDocument, type PolicyKind } from "../policies/policy-document.ts";
import { ref, sub, when, type Resources } from "./cloudformation.ts";
import { POLICY_SUFFIXES } from "./parameters.ts";
import { TABLE_ARN } from "./table.ts";

type Part = keyof typeof POLICY_SUFFIXES;

const POLICIES: Readonly<Record<Part, { readonly kind: PolicyKind; readonly purpose: string }>> = {
  AcquireOnly: { kind: "acquire-only", purpose: "Acquires, in every namespace." },
  FullAccess: { kind: "full-access", purpose: "Manages limits, entities and namespaces." },
  ReadOnly: { kind: "read-only", purpose: "Reads limits, usage and audit events." },
  NamespaceAcquire: { kind: "namespace-acquire", purpose: "Acquires in the tagged namespace." },
  NamespaceFullAccess: { kind: "namespace-full-access", purpose: "Manages the tagged namespace." },
  NamespaceReadOnly: { kind: "namespace-read-only", purpose: "Reads the tagged namespace." },
};

/** The policies that are attached to what uses the table. */
export function managedPolicyResources(): Resources {
  return Object.fromEntries(
    (Object.keys(POLICIES) as readonly Part[]).map((part) => [
      `${part}Policy`,
      {
        Type: "AWS::IAM::ManagedPolicy",
        Condition: "DeployIAM",
        Properties: {
          ManagedPolicyName: when(
            `HasCustom${part}PolicyName`,
            ref(`${part}PolicyName`),
            sub(`\${AWS::StackName}-${POLICY_SUFFIXES[part]}`),
          ),
          Description: POLICIES[part].purpose,
          PolicyDocument: policyDocument(POLICIES[part].kind, TABLE_ARN),
        },
      },
    ]),
  );
}
