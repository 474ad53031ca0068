import { copiedAmounts, type Amounts } from "../core/amounts.ts";
import { ValidationError } from "../core/errors.ts";
import { entityId as checkEntityId, resourceName } from "../core/identifiers.ts";
import { checkLimits, type Limit } from "../core/limit.ts";
import { checkOnUnavailable, policyOf, type OnUnavailable } from "../core/bucket/policy.ts";
import type { ConsumeRequest, ResourceAmounts } from "../repository/port.ts";

/** What a caller wants to take before its work starts. */
export interface AcquireRequest {
  readonly entityId: string;
  readonly resource: string;
  /**
   * Whole tokens, not negative. A limit that is not named is not charged, but is on the lease, and
   * refuses while it is in debt.
   */
  readonly consume: Amounts;
  /** Further resources of the entity, all or none; at most 16 resources in all. */
  readonly also?: Readonly<Record<string, Amounts>>;
  /** In place of the stored limits, for this call; not with `also`. */
  readonly limits?: readonly Limit[];
  readonly onUnavailable?: OnUnavailable;
  /** How long the call may wait until it fits. @default 0 */
  readonly waitUpToMs?: number;
  /** Ends the waiting; the call rejects with `signal.reason`. No effect after the grant. */
  readonly signal?: AbortSignal;
}

/** More resources than this in one call would not fit one transaction of every backend. */
const MAX_RESOURCES = 16;

/**
 * Checks a request and puts it into the words of the port. Amounts are copied: the caller may use
 * its object again, and a lease lives on.
 */
export function consumeRequest(request: AcquireRequest): ConsumeRequest {
  const entityId = checkEntityId(request.entityId);
  const resource = resourceName(request.resource);
  const own = { resource, amounts: copiedAmounts(request.consume, "consume") };
  const override =
    request.limits === undefined ? undefined : policyOf(checkLimits(request.limits), "override");
  return {
    entityId,
    charges: request.also === undefined ? [own] : [own, ...furtherResources(request, request.also)],
    override,
  };
}

/** Checks that there is a request, and how it wants to wait and to fail. */
export function checkCallOptions(request: AcquireRequest): void {
  if (typeof request !== "object" || request === null)
    throw new ValidationError(
      "request",
      request,
      "must be an object with entityId, resource and consume",
    );
  const { waitUpToMs, onUnavailable, signal } = request;
  if (waitUpToMs !== undefined && !(typeof waitUpToMs === "number" && waitUpToMs >= 0)) {
    throw new ValidationError("waitUpToMs", waitUpToMs, "must be 0 or more milliseconds");
  }
  if (onUnavailable !== undefined) checkOnUnavailable(onUnavailable);
  if (signal !== undefined && !(signal instanceof AbortSignal))
    throw new ValidationError("signal", signal, "must be an AbortSignal");
}

function furtherResources(
  { resource, limits }: AcquireRequest,
  also: Readonly<Record<string, Amounts>>,
): readonly ResourceAmounts[] {
  if (typeof also !== "object" || also === null || Symbol.iterator in also)
    throw new ValidationError("also", also, "must be an object of amounts by resource");
  if (limits !== undefined)
    throw new ValidationError("limits", "limits", "cannot be combined with also");
  const further = Object.entries(also).map(([name, amounts]) => {
    resourceName(name, "also");
    if (name === resource)
      throw new ValidationError(
        "also",
        name,
        "names the call's own resource; put its amounts into consume",
      );
    return { resource: name, amounts: copiedAmounts(amounts, `also.${name}`) };
  });
  if (further.length + 1 > MAX_RESOURCES)
    throw new ValidationError(
      "also",
      further.length + 1,
      `a call may name at most ${MAX_RESOURCES} resources`,
    );
  return further;
}
