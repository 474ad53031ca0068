/*
 * The rooms of this package; each imports only those above it, and cdk only the first four:
 *
 *   cloudformation/          what a template consists of, and how it is printed
 *   policies/ template/      the policies and the template of a stack as data
 *   options/                 options of a stack, checked, as parameters of the template; tags
 *   aws/                     where AWS is, its clients, its errors in one sentence each
 *   code/                    the code of the functions, and the bucket that it is put into
 *   stack/                   deploying, updating and deleting by change set
 *   discovery/               listing stacks, and looking at one: stack, table, heartbeat
 *   manifest/                manifests as YAML or JSON, and the template that declares their limits
 *   cdk/                     the resources of a stack as a construct of the CDK
 */
export type { StackPlace } from "./aws/place.ts";
export { lambdaPackage } from "./code/lambda-package.ts";
export type { LambdaPackage } from "./code/lambda-package.ts";
export { listStacks } from "./discovery/list-stacks.ts";
export type { StackSummary } from "./discovery/list-stacks.ts";
export { stackStatus } from "./discovery/stack-status.ts";
export type { StatusOptions } from "./discovery/stack-status.ts";
export type {
  AggregatorCondition,
  AggregatorStatus,
  Connectivity,
  HeartbeatState,
  NamedResource,
  Seen,
  StackState,
  StackStatus,
  TableState,
  Unknown,
  VersionsState,
} from "./discovery/status-model.ts";
export { toParameters } from "./options/parameters.ts";
export { aggregatorStatements, runnerStatements } from "./policies/aggregator-statements.ts";
export type { AggregatorResources } from "./policies/aggregator-statements.ts";
export { NAMESPACE_TAG, policyDocument, POLICY_KINDS } from "./policies/policy-document.ts";
export type { PolicyDocument, PolicyKind } from "./policies/policy-document.ts";
export { provisionerStatements } from "./policies/provisioner-statements.ts";
export type { PolicyStatement } from "./policies/policy-statements.ts";
export { deleteStack } from "./stack/delete-stack.ts";
export type { DeleteOptions, DeleteReport } from "./stack/delete-stack.ts";
export { destructive } from "./stack/change-set.ts";
export { deployStack } from "./stack/deploy-stack.ts";
export type { DeployOptions, DeployReport } from "./stack/deploy-stack.ts";
export type { ResourceChange } from "./stack/change-set.ts";
export type { StackEvent } from "./stack/events.ts";
export { ensureStack } from "./stack/ensure-stack.ts";
export { stackExists } from "./stack/stack-exists.ts";
export { updateLambda } from "./stack/update-lambda.ts";
export { stackTemplate, templateYaml } from "./template/stack-template.ts";
export type { Template } from "./cloudformation/template.ts";
