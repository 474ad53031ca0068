import { copyAmounts, isRecord, NO_AMOUNTS, type Amounts } from "../core/amounts.ts";
import { ValidationError } from "../core/errors.ts";
import { checkOptions, optionNames, buildUnknownOptionError } from "../core/options.ts";
import { entityId as checkEntityId, limitName, resourceName } from "../core/identifiers.ts";
import type { Limit } from "../core/limit.ts";
import { checkSupportedLimits } from "../core/supported-limits.ts";
import type { Leave } from "../core/bucket/leave.ts";
import {
  checkOnUnavailable,
  buildPolicy,
  type OnUnavailable,
  type Policy,
} from "../core/bucket/policy.ts";
import type { ConsumeRequest, ResourceAmounts } from "../repository/port.ts";

/** What a caller takes before its work starts, and how it waits. */
export interface AcquireRequest {
  /** Who makes the call. The entity need not have been created. */
  readonly entityId: string;
  /** What is used, such as a model. Resources need no registration. */
  readonly resource: string;
  /**
   * Whole tokens by limit, not negative. A limit that is not named is not charged, but it can be
   * settled on the lease, and it refuses the call while it is in debt.
   */
  readonly consume: Amounts;
  /** Further resources to take from: all of them or none. At most 16 resources in total. */
  readonly also?: Readonly<Record<string, Amounts>>;
  /** Limits for this call, instead of the stored ones. Cannot be combined with `also`. */
  readonly limits?: readonly Limit[];
  /**
   * Whole tokens by limit that every bucket of the call's own resource must still hold after it.
   * @default nothing
   */
  readonly leave?: Amounts;
  /**
   * The class of the call. It must leave what the limits `reserve` from that class, and nothing if
   * they do not know it. @default none
   */
  readonly priority?: string;
  /** What to do if the store cannot be reached. @default the limiter's choice */
  readonly onUnavailable?: OnUnavailable;
  /** How long the call may wait for tokens. @default 0 */
  readonly waitUpToMs?: number;
  /** Aborts the wait: the call rejects with `signal.reason`. Has no effect after the grant. */
  readonly signal?: AbortSignal;
}

/** Consumption that has already happened. */
export interface ChargeRequest {
  /** Who consumed. The entity need not have been created. */
  readonly entityId: string;
  /** What was used, such as a model. Resources need no registration. */
  readonly resource: string;
  /** Whole tokens by limit, not negative. Only limits that exist. */
  readonly amounts: Amounts;
  /** What was used of further resources. At most 16 resources in total. */
  readonly also?: Readonly<Record<string, Amounts>>;
}

const CHARGE_NAMES = optionNames<ChargeRequest>({
  entityId: true,
  resource: true,
  amounts: true,
  also: true,
});

const REQUEST_NAMES = optionNames<AcquireRequest>({
  entityId: true,
  resource: true,
  consume: true,
  also: true,
  limits: true,
  leave: true,
  priority: true,
  onUnavailable: true,
  waitUpToMs: true,
  signal: true,
});

/** Most resources in one call: they have to fit into one transaction of every backend. */
const MAX_RESOURCES = 16;

/**
 * Checks a request and translates it for the repository, with the limiter's defaults. Amounts are
 * copied, because the lease outlives the call and the caller may reuse its object.
 */
export function checkRequest(request: AcquireRequest, defaults?: Policy): ConsumeRequest {
  checkCallOptions(request);
  const entityId = checkEntityId(request.entityId);
  const resource = resourceName(request.resource);
  const own: ResourceAmounts = { resource, amounts: copyAmounts(request.consume, "consume") };
  const override =
    request.limits === undefined ? undefined : buildOverride(request.limits, defaults);
  if (override !== undefined && request.also !== undefined)
    throw new ValidationError("limits", "limits", "cannot be combined with also");
  const wanted = request.also === undefined ? [own] : withFurther(own, request.also);
  const leavesNothing = request.leave === undefined && request.priority === undefined;
  const resources = leavesNothing ? wanted : withLeave(wanted, request);
  return { entityId, resources, override, defaults };
}

function buildOverride(limits: readonly Limit[], defaults: Policy | undefined): Policy {
  return buildPolicy(checkSupportedLimits(limits), "override", { defaults });
}

/** Amounts are left of the call's own resource; every bucket has its own reserves. */
function withLeave(
  resources: readonly ResourceAmounts[],
  { leave = NO_AMOUNTS, priority }: AcquireRequest,
): readonly ResourceAmounts[] {
  if (priority !== undefined) limitName(priority, "priority");
  const own: Leave = { amounts: copyAmounts(leave, "leave"), priority };
  const further = { amounts: NO_AMOUNTS, priority };
  return resources.map((each, index) => ({ ...each, leave: index === 0 ? own : further }));
}

/** Checks a charge and translates it for the repository. */
export function checkCharge(request: ChargeRequest, defaults?: Policy): ConsumeRequest {
  if (!isRecord(request))
    throw new ValidationError(
      "request",
      request,
      "must be one object { entityId, resource, amounts }, not arguments one by one",
    );
  checkOptions(request, CHARGE_NAMES, "a charge");
  const entityId = checkEntityId(request.entityId);
  const resource = resourceName(request.resource);
  const field = "amounts";
  const own = { resource, amounts: copyAmounts(request.amounts, field), field };
  const resources = request.also === undefined ? [own] : withFurther(own, request.also);
  return { entityId, resources, override: undefined, defaults };
}

/**
 * Checks that the request is an object of known names, and its options for waiting and for an
 * unavailable store. It allocates nothing.
 */
function checkCallOptions(request: AcquireRequest): void {
  if (typeof request !== "object" || request === null)
    throw new ValidationError(
      "request",
      request,
      "must be one object { entityId, resource, consume }, not arguments one by one",
    );
  // Comparing the usual names first makes this check free; the set alone would cost 70 ns a call.
  for (const name in request)
    if (name !== "entityId" && name !== "resource" && name !== "consume")
      if (!REQUEST_NAMES.has(name)) throw buildUnknownOptionError(name, REQUEST_NAMES, "a call");
  const { waitUpToMs, onUnavailable, signal } = request;
  if (waitUpToMs !== undefined) checkWait(waitUpToMs);
  if (onUnavailable !== undefined) checkOnUnavailable(onUnavailable);
  if (signal !== undefined && !(signal instanceof AbortSignal))
    throw new ValidationError("signal", signal, "must be an AbortSignal");
}

/** Throws for a wait that is not a valid time. */
export function checkWait(waitUpToMs: unknown): void {
  if (!(typeof waitUpToMs === "number" && waitUpToMs >= 0))
    throw new ValidationError("waitUpToMs", waitUpToMs, "must be 0 or more milliseconds");
}

/** The call's own resource and further ones, which name their fields if it does. */
function withFurther(
  own: ResourceAmounts,
  also: Readonly<Record<string, Amounts>>,
): readonly ResourceAmounts[] {
  if (!isRecord(also))
    throw new ValidationError("also", also, "must be an object of amounts by resource");
  const further = Object.entries(also).map(([name, amounts]) => {
    resourceName(name, "also");
    if (name === own.resource)
      throw new ValidationError(
        "also",
        name,
        `must not name the call's own resource; put its amounts into ${own.field ?? "consume"}`,
      );
    const field = `also.${name}`;
    const copied = copyAmounts(amounts, field);
    return own.field === undefined
      ? { resource: name, amounts: copied }
      : { resource: name, amounts: copied, field };
  });
  if (further.length + 1 > MAX_RESOURCES)
    throw new ValidationError(
      "also",
      further.length + 1,
      `must not bring the call to more than ${MAX_RESOURCES} resources`,
    );
  return [own, ...further];
}
