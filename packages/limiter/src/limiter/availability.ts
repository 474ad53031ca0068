import type { Amounts } from "../core/amounts.ts";
import type { LimitStatus } from "../core/bucket/decision.ts";
import type { AcquireRequest } from "./call.ts";

/** The result that an acquire would have. Nothing is taken. */
export interface Availability {
  /** Whether an acquire would be granted now. */
  readonly allowed: boolean;
  /**
   * Whole tokens of the call's own resource by limit: the lower of the entity's balance and, if it
   * cascades, its parent's.
   */
  readonly available: Amounts;
  /** 0 if it fits, `Infinity` if it never can. */
  readonly retryAfterSeconds: number;
  /** Every limit of the decision, as in a refusal. */
  readonly statuses: readonly LimitStatus[];
}

/** The verdict on a call, from the states of all its limits. */
export function computeAvailability(
  { entityId, resource }: AcquireRequest,
  statuses: readonly LimitStatus[],
): Availability {
  const own = statuses.filter((status) => status.resource === resource);
  const names = own
    .filter((status) => status.entityId === entityId)
    .map(({ limitName }) => limitName);
  const least = (name: string): number =>
    Math.min(
      ...own.filter(({ limitName }) => limitName === name).map(({ available }) => available),
    );
  return {
    allowed: statuses.every(({ exceeded }) => !exceeded),
    available: Object.fromEntries(names.map((name) => [name, least(name)])),
    retryAfterSeconds: Math.max(...statuses.map(({ retryAfterSeconds }) => retryAfterSeconds)),
    statuses,
  };
}
