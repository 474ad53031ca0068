import {
  DescribeStacksCommand,
  ListStackResourcesCommand,
  type CloudFormationClient,
  type Stack,
  type StackResourceSummary,
} from "@aws-sdk/client-cloudformation";
import { ourTags } from "./our-tags.ts";
import type { NamedResource, StackState } from "./status-model.ts";

/** Asks CloudFormation for a stack; throws if there is none. */
export async function stackState(
  client: CloudFormationClient,
  stack: string,
): Promise<StackState | undefined> {
  const { Stacks = [] } = await client.send(new DescribeStacksCommand({ StackName: stack }));
  return Stacks[0] && stackStateOf(Stacks[0]);
}

/** CloudFormation has no error of its own for it. */
export function isMissingStack(error: Error): boolean {
  return error.name === "ValidationError" && error.message.includes("does not exist");
}

function stackStateOf(stack: Stack): StackState {
  const tags = ourTags(stack);
  const { StackStatusReason: reason, CreationTime, LastUpdatedTime } = stack;
  return {
    status: stack.StackStatus ?? "",
    ...(reason && { reason }),
    isOurs: tags !== undefined,
    ...(CreationTime && { createdAt: CreationTime }),
    ...(LastUpdatedTime && { updatedAt: LastUpdatedTime }),
    ...tags?.versions,
    drift: [],
  };
}

/** A page has about a hundred resources, and a stack has at most 500. */
const MOST_PAGES = 20;

/** All resources of a stack. */
export async function stackResources(
  client: CloudFormationClient,
  stack: string,
): Promise<readonly StackResourceSummary[]> {
  const resources: StackResourceSummary[] = [];
  let NextToken: string | undefined;
  for (let page = 0; page < MOST_PAGES; page += 1) {
    const answer = await client.send(
      new ListStackResourcesCommand({ StackName: stack, ...(NextToken && { NextToken }) }),
    );
    resources.push(...(answer.StackResourceSummaries ?? []));
    NextToken = answer.NextToken;
    if (NextToken === undefined) break;
  }
  return resources;
}

/** The resources of a type, by their names. */
export function namedResources(
  resources: readonly StackResourceSummary[],
  type: string,
): readonly NamedResource[] {
  return resources
    .filter(({ ResourceType, PhysicalResourceId }) => ResourceType === type && PhysicalResourceId)
    .map(({ LogicalResourceId = "", PhysicalResourceId = "" }) => ({
      logicalId: LogicalResourceId,
      physicalId: PhysicalResourceId,
    }))
    .toSorted((left, right) => (left.logicalId < right.logicalId ? -1 : 1));
}
