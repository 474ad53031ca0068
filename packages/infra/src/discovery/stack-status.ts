import type { StackResourceSummary } from "@aws-sdk/client-cloudformation";
import { VERSION } from "zae-limiter";
import { withoutCredentials } from "zae-limiter/open";
import { withClients, type AwsClients } from "../aws/clients.ts";
import { resolvePlace, type StackPlace } from "../aws/place.ts";
import { judgeAggregator } from "./aggregator-state.ts";
import { viewAsClient } from "./client-part.ts";
import { getKnown, isUnknown } from "./parts.ts";
import { findProblems, findWarnings } from "./problems.ts";
import { findResources, findStack, selectResources } from "./stack-part.ts";
import type {
  NamedResource,
  Seen,
  StackState,
  StackStatus,
  VersionsState,
} from "./status-model.ts";
import { findTable } from "./table-part.ts";

/** Options of `stackStatus`. */
export interface StatusOptions extends StackPlace {
  /** The current time, from which the lag is computed. @default that of the system */
  readonly nowMs?: () => number;
  /** A service that has not answered by then is unknown. @default 20000 */
  readonly timeoutMs?: number;
}

/** The name of the function in the template. */
const AGGREGATOR_FUNCTION = "AggregatorFunction";

/** Longer than a few repetitions of a throttled request, and not too long for a person. */
const DEFAULT_TIMEOUT_MS = 20_000;

/**
 * Looks at a stack, at its table as DynamoDB and as a client see it, and at the heartbeat of its
 * aggregator, all at once. Changes nothing. A part that cannot be read is `Unknown`. Throws only
 * for an invalid place, for instance one without a region.
 *
 * @example
 * const { aggregator, problems } = await stackStatus({ stack: "my-stack", region: "eu-west-1" });
 */
export async function stackStatus(options: StatusOptions = {}): Promise<StackStatus> {
  const { nowMs = () => Date.now(), timeoutMs = DEFAULT_TIMEOUT_MS, ...place } = options;
  const signals = [AbortSignal.timeout(timeoutMs), ...(place.signal ? [place.signal] : [])];
  const signal = AbortSignal.any(signals);
  const checked = resolvePlace({ ...place, signal });
  const status = await withClients(checked, async (clients) => lookAt(clients, nowMs));
  place.signal?.throwIfAborted();
  return status;
}

async function lookAt(clients: AwsClients, nowMs: () => number): Promise<StackStatus> {
  const { stack, region, endpointUrl } = clients;
  const [client, stackPart, resources, table] = await Promise.all([
    viewAsClient(clients, nowMs),
    findStack(clients),
    findResources(clients),
    findTable(clients),
  ]);
  const { heartbeat, versions, connectivity } = client;
  const functions = selectType(resources, "AWS::Lambda::Function");
  const deployed = getKnown(stackPart);
  const evidence = {
    heartbeat,
    function: isUnknown(functions)
      ? functions
      : functions?.find(({ logicalId }) => logicalId === AGGREGATOR_FUNCTION),
    changedAt: deployed?.updatedAt ?? deployed?.createdAt,
  };
  const parts = {
    connectivity,
    infrastructure: addDrift(stackPart, versions),
    table,
    aggregator: judgeAggregator(evidence, nowMs()),
    versions,
    functions,
    roles: selectType(resources, "AWS::IAM::Role"),
    policies: selectType(resources, "AWS::IAM::ManagedPolicy"),
  };
  return {
    stack,
    region,
    ...(endpointUrl !== undefined && { endpointUrl: withoutCredentials(endpointUrl) }),
    problems: findProblems(parts),
    warnings: findWarnings(parts),
    ...parts,
  };
}

function selectType(
  resources: Seen<readonly StackResourceSummary[]>,
  type: string,
): Seen<readonly NamedResource[]> {
  return isUnknown(resources) ? resources : resources && selectResources(resources, type);
}

/** Compares the versions of the tags with this client, and with what the table says. */
function addDrift(stack: Seen<StackState>, versions: Seen<VersionsState>): Seen<StackState> {
  if (stack === undefined || isUnknown(stack)) return stack;
  const stored = getKnown(versions);
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
