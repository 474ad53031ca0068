import { isUnknown } from "./seen.ts";
import type { AggregatorStatus, FunctionState, MappingState, Seen } from "./status-model.ts";

/** What an aggregator is judged by. */
export type AggregatorEvidence = Pick<AggregatorStatus, "function" | "mapping" | "heartbeat"> & {
  /** The stream of the table now; undefined if it is not known. */
  readonly streamArn: string | undefined;
};

/** What the evidence amounts to. */
export type AggregatorVerdict = Pick<AggregatorStatus, "state" | "reason">;

/**
 * A runner writes a heartbeat every 30 seconds, about ten seconds behind the present: without one
 * for two minutes, nobody counts, or somebody is far behind.
 */
const RECENT_MS = 120_000;

/**
 * Judges whether usage is summed up. That the table has a stream proves nothing: the function and
 * its mapping must work, or somebody must have counted just now (W-78).
 */
export function aggregatorVerdict(evidence: AggregatorEvidence): AggregatorVerdict {
  const { function: lambda, mapping, heartbeat } = evidence;
  const byLambda = lambdaVerdict(lambda, mapping, evidence.streamArn);
  const isHealthy = byLambda.state === "enabled" || byLambda.state === "starting";
  // A function that fails is broken, although somebody counted a minute ago: it may have been it.
  if (isHealthy || byLambda.state === "broken") return byLambda;
  if (isUnknown(heartbeat) || heartbeat === undefined) return byLambda;
  if (heartbeat.lagMs > RECENT_MS) return byLambda;
  return { state: "enabled", reason: "a runner counts (zae-limiter aggregate)" };
}

function lambdaVerdict(
  lambda: Seen<FunctionState>,
  mapping: Seen<MappingState>,
  streamArn: string | undefined,
): AggregatorVerdict {
  if (isUnknown(lambda)) return { state: "unknown", reason: lambda.unknown };
  if (lambda === undefined)
    return { state: "none", reason: "there is no function, and no runner counts" };
  const { name } = lambda;
  if (lambda.state === "Failed" || lambda.lastUpdate === "Failed")
    return broken(
      `the function ${name} has failed`,
      lambda.state === "Failed" ? lambda.stateReason : lambda.lastUpdateReason,
    );
  if (isUnknown(mapping)) return { state: "unknown", reason: mapping.unknown };
  if (mapping === undefined)
    return broken(`no event source mapping leads from the table's stream to ${name}`);
  return mappingVerdict(lambda, mapping, streamArn);
}

function mappingVerdict(
  lambda: FunctionState,
  mapping: MappingState,
  streamArn: string | undefined,
): AggregatorVerdict {
  const { state, stateReason, lastResult, streamArn: readStream } = mapping;
  if (streamArn !== undefined && readStream !== undefined && readStream !== streamArn)
    return broken("the event source mapping reads a stream that is not the table's", readStream);
  if (state === "Disabled" || state === "Disabling")
    return isByUser(stateReason)
      ? { state: "disabled", reason: "somebody switched its event source mapping off" }
      : broken("Lambda switched the event source mapping off", stateReason);
  if (lastResult?.startsWith("PROBLEM") === true)
    return broken("the event source mapping has a problem", lastResult.replace(/^PROBLEM: */, ""));
  if (state === "Deleting") return broken("the event source mapping is being deleted");
  if (state === "Enabled" && lambda.state !== "Pending")
    return { state: "enabled", reason: `the function ${lambda.name} counts` };
  const what = state === "Enabled" ? `the function is ${lambda.state}` : `the mapping is ${state}`;
  return { state: "starting", reason: what };
}

/** Lambda writes "User action", "User initiated" or "USER_INITIATED"; a reason of its own else. */
function isByUser(stateReason: string | undefined): boolean {
  return stateReason === undefined || /^user/i.test(stateReason);
}

function broken(what: string, why?: string): AggregatorVerdict {
  return { state: "broken", reason: why ? `${what}: ${why}` : what };
}
