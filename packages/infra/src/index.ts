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
  AlarmState,
  Connectivity,
  DeadLetters,
  FunctionState,
  HeartbeatState,
  MappingState,
  NamedResource,
  Seen,
  StackState,
  StackStatus,
  TableState,
  Unknown,
  VersionsState,
} from "./discovery/status-model.ts";
export { parametersOf } from "./options/parameters.ts";
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
