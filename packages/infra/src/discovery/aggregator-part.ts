import {
  ListEventSourceMappingsCommand,
  type EventSourceMappingConfiguration,
} from "@aws-sdk/client-lambda";
import { GetQueueAttributesCommand, GetQueueUrlCommand } from "@aws-sdk/client-sqs";
import type { AwsClients } from "../aws/clients.ts";
import { functionState, LAMBDA } from "./function-part.ts";
import { seen, type Service } from "./seen.ts";
import type { AggregatorStatus, DeadLetters, MappingState, Seen } from "./status-model.ts";

/** It has one name in the old protocol of SQS, and another one in the new. */
const SQS: Service = {
  name: "SQS",
  prefix: "sqs",
  isMissing: ({ name }) => /NonExistentQueue|QueueDoesNotExist/.test(name),
};

/**
 * The function, its event source and its queue. They are found by the names that the template gives
 * them, and not by the stack, so that those are found too that were made by hand.
 */
export async function aggregatorParts(
  clients: AwsClients,
): Promise<Pick<AggregatorStatus, "function" | "mapping" | "deadLetters">> {
  const name = `${clients.stack}-aggregator`;
  const [lambda, mapping, letters] = await Promise.all([
    functionState(clients, name),
    mappingState(clients, name),
    deadLetters(clients, `${name}-dlq`),
  ]);
  return { function: lambda, mapping, deadLetters: letters };
}

/** If there are several mappings, one that is enabled counts: others are of earlier streams. */
async function mappingState(clients: AwsClients, name: string): Promise<Seen<MappingState>> {
  const command = new ListEventSourceMappingsCommand({ FunctionName: name });
  return seen(clients, LAMBDA, async (send) => {
    const { EventSourceMappings = [] } = await send("ListEventSourceMappings", (options) =>
      clients.lambda.send(command, options),
    );
    const ofTables = EventSourceMappings.filter(({ EventSourceArn }) =>
      EventSourceArn?.includes(":dynamodb:"),
    );
    const mapping = ofTables.find(({ State }) => State === "Enabled") ?? ofTables[0];
    return mapping && mappingOf(mapping);
  });
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

async function deadLetters(clients: AwsClients, queue: string): Promise<Seen<DeadLetters>> {
  return seen(clients, SQS, async (send) => {
    const { QueueUrl } = await send("GetQueueUrl", (options) =>
      clients.sqs.send(new GetQueueUrlCommand({ QueueName: queue }), options),
    );
    const command = new GetQueueAttributesCommand({
      QueueUrl,
      AttributeNames: ["ApproximateNumberOfMessages"],
    });
    const { Attributes } = await send("GetQueueAttributes", (options) =>
      clients.sqs.send(command, options),
    );
    return { queue, messages: Number(Attributes?.["ApproximateNumberOfMessages"] ?? 0) };
  });
}
