import type { MetricEmitter } from "./artillery.ts";

/** What a session times: calls and their outcomes. */
export const CALL_KINDS = ["acquire", "commit", "rollback", "rate_limited", "available"] as const;

/** The calls of a repository that a session makes and times, under their names in snake case. */
export const MANAGEMENT_CALLS = [
  "createEntity",
  "ensureEntity",
  "updateEntity",
  "deleteEntity",
  "getEntity",
  "getChildren",
  "listEntities",
  "setLimits",
  "getLimits",
  "deleteLimits",
  "resolveLimits",
  "setResourceDefaults",
  "getResourceDefaults",
  "deleteResourceDefaults",
  "listResourcesWithDefaults",
  "setSystemDefaults",
  "getSystemDefaults",
  "deleteSystemDefaults",
  "getBuckets",
  "getResourceCapacity",
  "getUsageSnapshots",
  "getUsageSummary",
  "getAuditEvents",
] as const;

/** The name of a management call. */
export type ManagementCall = (typeof MANAGEMENT_CALLS)[number];

/** The histogram of how late the generator's own event loop was. */
export const LAG_METRIC = "zae.generator.lag_us";

/**
 * The kind under which a management call is counted: `setLimits` is `set_limits`, and a call that
 * creates an entity is `create_entity`, whether it may exist or not.
 */
export function toKind(call: ManagementCall): string {
  return call
    .replace("ensure", "create")
    .replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/**
 * The names of the counter and the histogram of a kind, overall or for one name. None is the
 * beginning of another, which would break conditions of Artillery's `ensure`.
 */
export function buildMetricNames(kind: string, name?: string): readonly [string, string] {
  if (name === undefined) return [`zae.${kind}.count`, `zae.${kind}.us`];
  const safe = name.replaceAll(/[^\w-]/g, "_");
  return [`zae.${kind}_of.${safe}.count`, `zae.${kind}_of.${safe}.us`];
}

/** Counts one call of a kind and its latency, overall and under its name. */
export function emitCall(
  emitter: MetricEmitter,
  {
    kind,
    tookMs,
    name,
  }: { readonly kind: string; readonly tookMs: number; readonly name?: string | undefined },
): void {
  const us = Math.round(tookMs * 1000);
  for (const each of name === undefined ? [undefined] : [undefined, name]) {
    const [count, histogram] = buildMetricNames(kind, each);
    emitter.emit("counter", count, 1);
    emitter.emit("histogram", histogram, us);
  }
}
