import {
  DescribeStacksCommand,
  ListStackResourcesCommand,
  type Stack,
  type StackResourceSummary,
} from "@aws-sdk/client-cloudformation";
import { isStackAbsent } from "../aws/aws-errors.ts";
import type { AwsClients } from "../aws/clients.ts";
import { askPart, type Service } from "./parts.ts";
import type { NamedResource, Seen, StackState } from "./status-model.ts";
import { readTaggedVersions } from "./tagged-versions.ts";

const CLOUDFORMATION: Service = {
  name: "CloudFormation",
  prefix: "cloudformation",
  isMissing: isStackAbsent,
};

/** The stack itself. */
export async function findStack(clients: AwsClients): Promise<Seen<StackState>> {
  return askPart(clients, CLOUDFORMATION, async (send) => {
    const command = new DescribeStacksCommand({ StackName: clients.stack });
    const { Stacks = [] } = await send("DescribeStacks", (options) =>
      clients.cloudFormation.send(command, options),
    );
    return Stacks[0] && parseStack(Stacks[0]);
  });
}

function parseStack(stack: Stack): StackState {
  const versions = readTaggedVersions(stack);
  const { StackStatusReason: reason, CreationTime, LastUpdatedTime } = stack;
  return {
    status: stack.StackStatus ?? "",
    ...(reason && { reason }),
    isOurs: versions !== undefined,
    ...(CreationTime && { createdAt: CreationTime }),
    ...(LastUpdatedTime && { updatedAt: LastUpdatedTime }),
    ...versions,
    drift: [],
  };
}

/** A page has about a hundred resources, and a stack has at most 500. */
const MOST_PAGES = 20;

/** All resources of the stack. */
export async function findResources(
  clients: AwsClients,
): Promise<Seen<readonly StackResourceSummary[]>> {
  return askPart(clients, CLOUDFORMATION, async (send) => {
    const resources: StackResourceSummary[] = [];
    let NextToken: string | undefined;
    for (let page = 0; page < MOST_PAGES; page += 1) {
      const command = new ListStackResourcesCommand({
        StackName: clients.stack,
        ...(NextToken && { NextToken }),
      });
      const answer = await send("ListStackResources", (options) =>
        clients.cloudFormation.send(command, options),
      );
      resources.push(...(answer.StackResourceSummaries ?? []));
      NextToken = answer.NextToken;
      if (NextToken === undefined) break;
    }
    return resources;
  });
}

/** The resources of a type, by their names. */
export function selectResources(
  resources: readonly StackResourceSummary[],
  type: string,
): readonly NamedResource[] {
  return resources
    .filter(({ ResourceStatus }) => ResourceStatus !== "DELETE_COMPLETE")
    .filter(({ ResourceType, PhysicalResourceId }) => ResourceType === type && PhysicalResourceId)
    .map(({ LogicalResourceId = "", PhysicalResourceId = "" }) => ({
      logicalId: LogicalResourceId,
      physicalId: PhysicalResourceId,
    }))
    .toSorted((left, right) => (left.logicalId < right.logicalId ? -1 : 1));
}
