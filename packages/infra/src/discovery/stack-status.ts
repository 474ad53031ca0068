import { setMaxListeners } from "node:events";
import type { StackResourceSummary } from "@aws-sdk/client-cloudformation";
import { VERSION } from "zae-limiter";
import { withoutCredentials } from "zae-limiter/open";
import { withClients, type AwsClients } from "../aws/clients.ts";
import { checkedPlace, type StackPlace } from "../aws/place.ts";
import { alarmStates } from "./alarms-part.ts";
import { aggregatorParts } from "./aggregator-part.ts";
import { aggregatorVerdict } from "./aggregator-verdict.ts";
import { clientView } from "./client-part.ts";
import { provisionerState } from "./function-part.ts";
import { problemsOf, warningsOf } from "./problems.ts";
import { isUnknown, known } from "./seen.ts";
import { namedResources, stackResources, stackState } from "./stack-part.ts";
import type { Seen, StackState, StackStatus, VersionsState } from "./status-model.ts";
import { tableState } from "./table-part.ts";

/** How a stack is looked at. */
export interface StatusOptions extends StackPlace {
  /** The time now, which the lag is counted from. @default that of the system */
  readonly nowMs?: () => number;
  /** A service that has not answered by then is unknown. @default 20000 */
  readonly timeoutMs?: number;
}

/** Eleven requests wait at once, for answers or to be repeated; Node warns of more than ten. */
const MOST_WAITING = 50;

/** Longer than a few repetitions of a throttled request, and not too long for a person. */
const DEFAULT_TIMEOUT_MS = 20_000;

/**
 * Looks at a stack and everything that belongs to it, all at once. Changes nothing. What may not be
 * seen is `Unknown` in its own part; only a place that leads nowhere, without a region for
 * instance, throws.
 *
 * @example
 * const { aggregator, problems } = await stackStatus({ stack: "my-stack", region: "eu-west-1" });
 */
export async function stackStatus(options: StatusOptions = {}): Promise<StackStatus> {
  const { nowMs = () => Date.now(), timeoutMs = DEFAULT_TIMEOUT_MS, ...place } = options;
  const signals = [AbortSignal.timeout(timeoutMs), ...(place.signal ? [place.signal] : [])];
  const signal = AbortSignal.any(signals);
  setMaxListeners(MOST_WAITING, signal);
  const checked = checkedPlace({ ...place, signal });
  const status = await withClients(checked, async (clients) => lookedAt(clients, nowMs));
  place.signal?.throwIfAborted();
  return status;
}

async function lookedAt(clients: AwsClients, nowMs: () => number): Promise<StackStatus> {
  const { stack, region, endpointUrl } = clients;
  const resources = stackResources(clients);
  const [client, stackPart, table, aggregator, provisioner, named, alarms] = await Promise.all([
    clientView(clients, nowMs),
    stackState(clients),
    tableState(clients),
    aggregatorParts(clients),
    provisionerState(clients),
    resources,
    resources.then((found) => alarmsIn(found, clients)),
  ]);
  const { heartbeat, versions, connectivity } = client;
  const evidence = { ...aggregator, heartbeat };
  const parts = {
    connectivity,
    infrastructure: withDrift(stackPart, versions),
    table,
    aggregator: {
      ...aggregatorVerdict({ ...evidence, streamArn: known(table)?.streamArn }),
      ...evidence,
    },
    provisioner,
    versions,
    roles: ofType(named, "AWS::IAM::Role"),
    policies: ofType(named, "AWS::IAM::ManagedPolicy"),
    alarms,
  };
  return {
    stack,
    region,
    ...(endpointUrl !== undefined && { endpointUrl: withoutCredentials(endpointUrl) }),
    problems: problemsOf(parts),
    warnings: warningsOf(parts),
    ...parts,
  };
}

type Resources = Seen<readonly StackResourceSummary[]>;

function ofType(resources: Resources, type: string): StackStatus["roles"] {
  return isUnknown(resources) ? resources : resources && namedResources(resources, type);
}

/** Alarms are found by the stack: those of `my-stack-2` begin with the name of `my-stack` too. */
async function alarmsIn(resources: Resources, clients: AwsClients): Promise<StackStatus["alarms"]> {
  if (resources === undefined || isUnknown(resources)) return resources;
  const alarms = namedResources(resources, "AWS::CloudWatch::Alarm");
  return alarmStates(
    clients,
    alarms.map(({ physicalId }) => physicalId),
  );
}

/** Compares the versions of the tags with this client, and with what the table says. */
function withDrift(stack: Seen<StackState>, versions: Seen<VersionsState>): Seen<StackState> {
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
