import {
  GetFunctionConfigurationCommand,
  ListEventSourceMappingsCommand,
  type EventSourceMappingConfiguration,
  type LambdaClient,
} from "@aws-sdk/client-lambda";
import { GetQueueAttributesCommand, GetQueueUrlCommand, type SQSClient } from "@aws-sdk/client-sqs";
import type { DeadLetters, FunctionState, MappingState } from "./status-model.ts";

/**
 * The names that the template gives. They are not looked up in the stack, so that a function is
 * found too that was deployed by hand for a table without one.
 */
export function aggregatorNames(stack: string): {
  readonly function: string;
  readonly queue: string;
} {
  return { function: `${stack}-aggregator`, queue: `${stack}-aggregator-dlq` };
}

/** Asks Lambda for the function; throws if there is none. */
export async function functionState(client: LambdaClient, name: string): Promise<FunctionState> {
  const found = await client.send(new GetFunctionConfigurationCommand({ FunctionName: name }));
  const { StateReason, LastUpdateStatus, LastUpdateStatusReason, Runtime, CodeSha256 } = found;
  return {
    name,
    // Functions that are older than these states have none, and work.
    state: found.State ?? "Active",
    ...(StateReason && { stateReason: StateReason }),
    ...(LastUpdateStatus && { lastUpdate: LastUpdateStatus }),
    ...(LastUpdateStatusReason && { lastUpdateReason: LastUpdateStatusReason }),
    ...(Runtime && { runtime: Runtime }),
    ...(CodeSha256 && { codeSha256: CodeSha256 }),
    ...(found.LastModified && { modifiedAt: found.LastModified }),
  };
}

/**
 * Asks Lambda for the mapping from a table's stream to the function. If there are several, one that
 * is enabled counts: the others are of earlier streams.
 */
export async function mappingState(
  client: LambdaClient,
  functionName: string,
): Promise<MappingState | undefined> {
  const { EventSourceMappings = [] } = await client.send(
    new ListEventSourceMappingsCommand({ FunctionName: functionName }),
  );
  const ofTables = EventSourceMappings.filter(({ EventSourceArn }) =>
    EventSourceArn?.includes(":dynamodb:"),
  );
  const mapping = ofTables.find(({ State }) => State === "Enabled") ?? ofTables[0];
  return mapping && mappingOf(mapping);
}

function mappingOf(mapping: EventSourceMappingConfiguration): MappingState {
  const { UUID, State, StateTransitionReason, LastProcessingResult, EventSourceArn } = mapping;
  return {
    ...(UUID && { id: UUID }),
    state: State ?? "",
    ...(StateTransitionReason && { stateReason: StateTransitionReason }),
    ...(LastProcessingResult && { lastResult: LastProcessingResult }),
    ...(EventSourceArn && { streamArn: EventSourceArn }),
  };
}

/** Asks Lambda and, for a table or a function, DynamoDB: they share this name of an error. */
export function isMissingResource(error: Error): boolean {
  return error.name === "ResourceNotFoundException";
}

/** Asks SQS for the queue of what could not be processed; throws if there is none. */
export async function deadLetters(client: SQSClient, queue: string): Promise<DeadLetters> {
  const { QueueUrl } = await client.send(new GetQueueUrlCommand({ QueueName: queue }));
  const { Attributes } = await client.send(
    new GetQueueAttributesCommand({ QueueUrl, AttributeNames: ["ApproximateNumberOfMessages"] }),
  );
  return { queue, messages: Number(Attributes?.["ApproximateNumberOfMessages"] ?? 0) };
}

/** SQS calls it by one name in its old protocol, and by another in the new one. */
export function isMissingQueue(error: Error): boolean {
  return /NonExistentQueue|QueueDoesNotExist/.test(error.name);
}
