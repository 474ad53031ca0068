import type { StackResourceSummary } from "@aws-sdk/client-cloudformation";
import { VERSION } from "zae-limiter";
import { openClients, type AwsClients } from "../aws/clients.ts";
import type { StackPlace } from "../aws/place.ts";
import { alarmStates } from "./alarms-part.ts";
import {
  aggregatorNames,
  deadLetters,
  functionState,
  isMissingQueue,
  isMissingResource,
  mappingState,
} from "./aggregator-part.ts";
import { aggregatorVerdict } from "./aggregator-verdict.ts";
import { clientView, type ClientView } from "./client-part.ts";
import { problemsOf, warningsOf } from "./problems.ts";
import { isUnknown, known, seen, type Asked } from "./seen.ts";
import { isMissingStack, namedResources, stackResources, stackState } from "./stack-part.ts";
import type { AggregatorStatus, Seen, StackState, StackStatus } from "./status-model.ts";
import { tableState } from "./table-part.ts";

/** How a stack is looked at. */
export interface StatusOptions extends StackPlace {
  /** The time now, which the lag is counted from. @default that of the system */
  readonly nowMs?: () => number;
}

/**
 * Looks at a stack and everything that belongs to it, all at once. Changes nothing. What may not be
 * seen is `Unknown` in its own part; only a place that leads nowhere, without a region for
 * instance, throws.
 *
 * @example
 * const { aggregator, problems } = await stackStatus({ stack: "my-stack", region: "eu-west-1" });
 */
export async function stackStatus(options: StatusOptions = {}): Promise<StackStatus> {
  const { nowMs = () => Date.now(), ...place } = options;
  const clients = await openClients(place);
  try {
    return await lookedAt(clients, place, nowMs);
  } finally {
    clients.close();
  }
}

async function lookedAt(
  clients: AwsClients,
  place: StackPlace,
  nowMs: () => number,
): Promise<StackStatus> {
  const { stack, region, endpointUrl } = clients;
  const ask = askOf(clients);
  const resources = ask.cloudFormation(() => stackResources(clients.cloudFormation, stack));
  const [client, stackPart, table, aggregator, named, alarms] = await Promise.all([
    clientView({ ...place, stack, region }, nowMs),
    ask.cloudFormation(() => stackState(clients.cloudFormation, stack)),
    ask.dynamoDb((asked) => tableState(clients.dynamoDb, stack, asked)),
    aggregatorEvidence(clients, ask),
    resources,
    ask.cloudWatch(async () => alarmsIn(await resources, clients)),
  ]);
  const { heartbeat, versions, connectivity } = client;
  const evidence = { ...aggregator, heartbeat, streamArn: known(table)?.streamArn };
  const { function: lambda, mapping, deadLetters: letters } = aggregator;
  const parts = {
    connectivity,
    infrastructure: withDrift(stackPart, versions),
    table,
    aggregator: {
      ...aggregatorVerdict(evidence),
      function: lambda,
      mapping,
      heartbeat,
      deadLetters: letters,
    },
    versions,
    roles: ofType(named, "AWS::IAM::Role"),
    policies: ofType(named, "AWS::IAM::ManagedPolicy"),
    alarms,
  };
  return {
    stack,
    region,
    ...(endpointUrl !== undefined && { endpointUrl }),
    problems: problemsOf(parts),
    warnings: warningsOf(parts),
    ...parts,
  };
}

type Ask = <T>(ask: (asked: Asked) => Promise<Seen<T>>) => Promise<Seen<T>>;

/** One way to ask for each service: which errors mean that there is nothing differs. */
function askOf({
  endpointUrl,
}: AwsClients): Readonly<
  Record<"cloudFormation" | "dynamoDb" | "lambda" | "sqs" | "cloudWatch", Ask>
> {
  const to =
    (service: string, isMissing?: (error: Error) => boolean): Ask =>
    (ask) => {
      const asked = { service, endpointUrl, ...(isMissing !== undefined && { isMissing }) };
      return seen(asked, () => ask(asked));
    };
  return {
    cloudFormation: to("CloudFormation", isMissingStack),
    dynamoDb: to("DynamoDB", isMissingResource),
    lambda: to("Lambda", isMissingResource),
    sqs: to("SQS", isMissingQueue),
    cloudWatch: to("CloudWatch"),
  };
}

async function aggregatorEvidence(
  clients: AwsClients,
  ask: ReturnType<typeof askOf>,
): Promise<Pick<AggregatorStatus, "function" | "mapping" | "deadLetters">> {
  const names = aggregatorNames(clients.stack);
  const [lambda, mapping, letters] = await Promise.all([
    ask.lambda(() => functionState(clients.lambda, names.function)),
    ask.lambda(() => mappingState(clients.lambda, names.function)),
    ask.sqs(() => deadLetters(clients.sqs, names.queue)),
  ]);
  return { function: lambda, mapping, deadLetters: letters };
}

type Resources = Seen<readonly StackResourceSummary[]>;

function ofType(resources: Resources, type: string): StackStatus["roles"] {
  return isUnknown(resources) ? resources : resources && namedResources(resources, type);
}

/** Alarms are found by the stack: those of `my-stack-2` begin with the name of `my-stack` too. */
async function alarmsIn(
  resources: Resources,
  { cloudWatch }: AwsClients,
): Promise<StackStatus["alarms"]> {
  if (resources === undefined || isUnknown(resources)) return resources;
  const names = namedResources(resources, "AWS::CloudWatch::Alarm");
  return alarmStates(
    cloudWatch,
    names.map(({ physicalId }) => physicalId),
  );
}

/** Compares the versions of the tags with this client, and with what the table says. */
function withDrift(stack: Seen<StackState>, versions: ClientView["versions"]): Seen<StackState> {
  if (stack === undefined || isUnknown(stack)) return stack;
  const stored = known(versions);
  const drift = [
    differs("version", stack.version, `this client is ${VERSION}`, VERSION),
    differs(
      "lambda-version",
      stack.lambdaVersion,
      `the table says ${stored?.lambda}`,
      stored?.lambda,
    ),
    differs(
      "schema-version",
      stack.schemaVersion,
      `the table says ${stored?.schema}`,
      stored?.schema,
    ),
  ].filter((text) => text !== undefined);
  return { ...stack, drift };
}

function differs(
  tag: string,
  tagged: string | undefined,
  other: string,
  wanted: string | undefined,
): string | undefined {
  return tagged === undefined || wanted === undefined || tagged === wanted
    ? undefined
    : `the tag zae-limiter:${tag} is ${tagged}, and ${other}`;
}
