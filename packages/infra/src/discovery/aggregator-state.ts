import { isUnknown } from "./parts.ts";
import type { AggregatorStatus, HeartbeatState, NamedResource, Seen } from "./status-model.ts";

/** The facts by which an aggregator is judged. */
export interface AggregatorEvidence {
  readonly heartbeat: Seen<HeartbeatState>;
  /** The function of the stack; undefined if the stack has none, or if there is no stack. */
  readonly function: Seen<NamedResource>;
  /** When the stack was last changed. */
  readonly changedAt: Date | undefined;
}

/**
 * A function writes a heartbeat each minute, and a runner every 30 seconds. It passes through the
 * stream, so it is recent only if everything up to it was counted.
 */
const RECENT_MS = 180_000;

/** How long AWS may take to start a function that was just deployed. */
const STARTS_WITHIN_MS = 600_000;

/** Judges whether usage is counted. That the table has a stream proves nothing (W-78). */
export function judgeAggregator(evidence: AggregatorEvidence, nowMs: number): AggregatorStatus {
  const { heartbeat, function: lambda, changedAt } = evidence;
  const withState = (state: AggregatorStatus["state"], reason: string): AggregatorStatus => ({
    state,
    reason,
    heartbeat,
  });
  if (isUnknown(heartbeat)) return withState("unknown", heartbeat.unknown);
  if (heartbeat !== undefined && heartbeat.lagMs <= RECENT_MS)
    return withState("enabled", "usage is counted");
  if (isUnknown(lambda)) return withState("unknown", lambda.unknown);
  if (lambda === undefined)
    return withState("none", "the stack has no function, and no runner counts");
  const name = lambda.physicalId;
  if (changedAt !== undefined && nowMs - changedAt.getTime() < STARTS_WITHIN_MS)
    return withState("starting", `the function ${name} has not counted yet`);
  return withState(
    "broken",
    `the function ${name} does not count: see its log, its event source and its dead letters`,
  );
}
