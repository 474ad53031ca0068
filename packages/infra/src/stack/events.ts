import {
  DescribeStackEventsCommand,
  type StackEvent as AwsEvent,
} from "@aws-sdk/client-cloudformation";
import { isStackAbsent } from "../aws/aws-errors.ts";
import type { AwsClients } from "../aws/clients.ts";

/** Something that happened to a stack. */
export interface StackEvent {
  readonly at: Date;
  readonly logicalId: string;
  readonly resourceType: string;
  readonly status: string;
  readonly reason: string | undefined;
}

/** A stack has far fewer events than that in one operation; a page holds 100. */
const MAX_PAGES = 50;

/** The type of the events that are about the stack itself. */
export const STACK_TYPE = "AWS::CloudFormation::Stack";

/**
 * Reads the events of a stack as they come, each once and in their order. CloudFormation returns
 * them newest first, page by page, so it reads back to the last one that it knows. It goes by their
 * ids: several events may have the same time.
 */
export class EventFeed {
  readonly #clients: AwsClients;
  readonly #stackId: string;
  #lastId: string | undefined;

  constructor(clients: AwsClients, stackId: string) {
    this.#clients = clients;
    this.#stackId = stackId;
  }

  /** Skips what has happened so far. */
  async skip(): Promise<void> {
    for await (const { EventId } of newestFirst(this.#clients, this.#stackId)) {
      this.#lastId = EventId;
      return;
    }
  }

  /** What has happened since the last call, oldest first. */
  async next(): Promise<readonly StackEvent[]> {
    const fresh: AwsEvent[] = [];
    for await (const event of newestFirst(this.#clients, this.#stackId)) {
      if (event.EventId === this.#lastId) break;
      fresh.push(event);
    }
    this.#lastId = fresh[0]?.EventId ?? this.#lastId;
    return fresh.toReversed().map(toEvent);
  }
}

/** The events of the last operation on a stack, oldest first. */
export async function lastOperation(
  clients: AwsClients,
  stackId: string,
): Promise<readonly StackEvent[]> {
  const events: StackEvent[] = [];
  for await (const event of newestFirst(clients, stackId)) {
    events.push(toEvent(event));
    if (isBeginning(event)) break;
  }
  return events.toReversed();
}

/** A rollback belongs to the operation that it undoes. */
function isBeginning({ PhysicalResourceId, StackId, ResourceStatus }: AwsEvent): boolean {
  return (
    PhysicalResourceId === StackId &&
    ["CREATE_IN_PROGRESS", "UPDATE_IN_PROGRESS", "DELETE_IN_PROGRESS"].includes(ResourceStatus!)
  );
}

async function* newestFirst(clients: AwsClients, StackName: string): AsyncGenerator<AwsEvent> {
  let NextToken: string | undefined;
  for (let pages = 0; pages < MAX_PAGES; pages += 1) {
    const command = new DescribeStackEventsCommand({ StackName, NextToken });
    const page = await clients.callUnless(
      isStackAbsent,
      "cloudformation:DescribeStackEvents",
      (options) => clients.cloudFormation.send(command, options),
    );
    yield* page?.StackEvents ?? [];
    NextToken = page?.NextToken;
    if (NextToken === undefined) return;
  }
}

function toEvent(event: AwsEvent): StackEvent {
  return {
    at: event.Timestamp!,
    logicalId: event.LogicalResourceId!,
    resourceType: event.ResourceType!,
    status: event.ResourceStatus!,
    reason: event.ResourceStatusReason,
  };
}
