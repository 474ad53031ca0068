import type { NodeMap } from "../query-protocol.ts";
import type {
  ScriptedChange,
  ScriptedChangeSet,
  ScriptedEvent,
  ScriptedStack,
  StackResource,
} from "./stack-state.ts";

/** A stack as `DescribeStacks` and `ListStacks` return it. */
export function describedStack(stack: ScriptedStack): NodeMap {
  const { target } = stack;
  return {
    StackId: stack.id,
    StackName: stack.name,
    Description: target?.template.Description,
    CreationTime: stack.createdAt,
    LastUpdatedTime: stack.updatedAt,
    DeletionTime: stack.deletedAt,
    StackStatus: stack.status,
    StackStatusReason: stack.reason,
    EnableTerminationProtection: stack.terminationProtection,
    Parameters: list(target?.parameters ?? {}, "ParameterKey", "ParameterValue"),
    Tags: list(target?.tags ?? {}, "Key", "Value"),
    Outputs: stack.outputs,
    Capabilities: ["CAPABILITY_NAMED_IAM"],
  };
}

function list(
  values: Readonly<Record<string, string>>,
  keyName: string,
  valueName: string,
): readonly NodeMap[] {
  return Object.entries(values).map(([key, value]) => ({ [keyName]: key, [valueName]: value }));
}

export function describedEvent(stack: ScriptedStack, event: ScriptedEvent): NodeMap {
  return {
    StackId: stack.id,
    StackName: stack.name,
    EventId: event.id,
    Timestamp: event.at,
    LogicalResourceId: event.logicalId,
    PhysicalResourceId: event.physicalId,
    ResourceType: event.type,
    ResourceStatus: event.status,
    ResourceStatusReason: event.reason,
    ClientRequestToken: event.token,
  };
}

export function describedResource(stack: ScriptedStack, resource: StackResource): NodeMap {
  return {
    StackId: stack.id,
    StackName: stack.name,
    LogicalResourceId: resource.logicalId,
    PhysicalResourceId: resource.physicalId,
    ResourceType: resource.type,
    ResourceStatus: resource.status,
    Timestamp: stack.createdAt,
    LastUpdatedTimestamp: stack.createdAt,
  };
}

export function describedChangeSet(stack: ScriptedStack, changeSet: ScriptedChangeSet): NodeMap {
  return {
    ChangeSetId: changeSet.id,
    ChangeSetName: changeSet.name,
    StackId: stack.id,
    StackName: stack.name,
    CreationTime: changeSet.createdAt,
    Status: changeSet.status,
    StatusReason: changeSet.reason,
    ExecutionStatus: changeSet.executionStatus,
    Parameters: list(changeSet.target.parameters, "ParameterKey", "ParameterValue"),
    Tags: list(changeSet.target.tags, "Key", "Value"),
  };
}

export function describedChange(change: ScriptedChange): NodeMap {
  return {
    Type: "Resource",
    ResourceChange: {
      Action: change.action,
      LogicalResourceId: change.logicalId,
      PhysicalResourceId: change.physicalId,
      ResourceType: change.type,
      Replacement: change.replacement,
      Scope: change.scope,
      Details: change.causes.map(({ name, recreates }) => ({
        Target: { Attribute: "Properties", Name: name, RequiresRecreation: recreates },
        Evaluation: recreates === "Conditionally" ? "Dynamic" : "Static",
        ChangeSource: "DirectModification",
      })),
    },
  };
}
