import {
  NAMESPACE_TAG,
  policyDocument,
  type PolicyKind,
} from "../../../src/policies/policy-document.ts";
import { OTHER, OWN, type RecordedCall } from "./call-recorder.ts";
import { METHOD_NEEDS, POLICIES_OF, type Needs } from "./method-roles.ts";
import { PolicyJudge, TABLE_ARN } from "./policy-judge.ts";

/** Decides for a principal with one policy, and with the tag of the tenant. */
export function getJudge(kind: PolicyKind, namespaceId: string = OWN): PolicyJudge {
  const policies = [policyDocument(kind, TABLE_ARN)];
  return new PolicyJudge({ policies, tags: { [NAMESPACE_TAG]: namespaceId } });
}

/** The needs of a method; throws for a method without roles. */
function getNeeds(method: string): Needs {
  const needs = (METHOD_NEEDS as Readonly<Record<string, Needs>>)[method];
  if (needs === undefined) throw new Error(`Give ${method} its roles in method-roles.ts.`);
  return needs;
}

/** Calls that a policy denies although its programs make them. */
export async function missingRights(calls: readonly RecordedCall[]): Promise<readonly string[]> {
  const missing: string[] = [];
  for (const { all, tenant } of Object.values(POLICIES_OF)) {
    for (const kind of [all, tenant]) {
      const denied = await getJudge(kind).denied(neededBy(kind, calls));
      missing.push(...denied.map((call) => `${kind}: ${JSON.stringify(call)}`));
    }
  }
  return missing;
}

/** The calls that the programs with this policy make. */
export function neededBy(
  kind: PolicyKind,
  calls: readonly RecordedCall[],
): readonly RecordedCall[] {
  return calls.filter(({ method, leadingKeys }) => {
    const { roles, tenants } = getNeeds(method);
    if (roles.some((role) => POLICIES_OF[role].all === kind)) return true;
    // A repository may be used for several tenants; a tenant uses it for one.
    const isOwn = leadingKeys.every((key) => key.startsWith(OWN) || key.startsWith("_/"));
    return tenants && isOwn && roles.some((role) => POLICIES_OF[role].tenant === kind);
  });
}

/** The same call by a tenant on the items of another one. */
export function onOther<Call extends { readonly leadingKeys: readonly string[] }>(
  call: Call,
): Call {
  return { ...call, leadingKeys: call.leadingKeys.map((key) => key.replace(OWN, OTHER)) };
}
