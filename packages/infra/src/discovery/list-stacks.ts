import { DescribeStacksCommand, type Stack } from "@aws-sdk/client-cloudformation";
import { withClients } from "../aws/clients.ts";
import { resolvePlace, type StackPlace } from "../aws/place.ts";
import { readTaggedVersions, type TaggedVersions } from "./tagged-versions.ts";

/** A stack of zae-limiter. */
export interface StackSummary extends TaggedVersions {
  /** Its name. */
  readonly stack: string;
  /** Such as `CREATE_COMPLETE`. */
  readonly status: string;
  readonly createdAt?: Date;
  readonly updatedAt?: Date;
}

/** An account has at most 2000 stacks in a region unless AWS raised the quota; a page has 100. */
const MOST_PAGES = 1000;

/**
 * Lists all stacks of zae-limiter in a region, by name: one request for each page of stacks, and
 * none for a single stack.
 *
 * @example
 * const stacks = await listStacks({ region: "eu-west-1" });
 */
export async function listStacks(
  place: Omit<StackPlace, "stack"> = {},
): Promise<readonly StackSummary[]> {
  const found: StackSummary[] = [];
  await withClients(resolvePlace(place), async (clients) => {
    let NextToken: string | undefined;
    for (let page = 0; page < MOST_PAGES; page += 1) {
      const command = new DescribeStacksCommand(NextToken === undefined ? {} : { NextToken });
      const answer = await clients.call("cloudformation:DescribeStacks", (options) =>
        clients.cloudFormation.send(command, options),
      );
      found.push(...(answer.Stacks ?? []).flatMap(summarize));
      NextToken = answer.NextToken;
      if (NextToken === undefined) break;
    }
  });
  return found.toSorted((left, right) => (left.stack < right.stack ? -1 : 1));
}

function summarize(stack: Stack): readonly StackSummary[] {
  const versions = readTaggedVersions(stack);
  if (versions === undefined) return [];
  const { StackName = "", StackStatus = "", CreationTime, LastUpdatedTime } = stack;
  return [
    {
      stack: StackName,
      status: StackStatus,
      ...versions,
      ...(CreationTime && { createdAt: CreationTime }),
      ...(LastUpdatedTime && { updatedAt: LastUpdatedTime }),
    },
  ];
}
