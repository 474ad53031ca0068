import { checkNames, type Amounts } from "../core/amounts.ts";
import { amountsUnder, type Charge } from "../core/decision.ts";
import { ValidationError } from "../core/errors.ts";
import type { Policy } from "../core/policy.ts";
import type { ConsumeRequest, ResourceAmounts } from "./port.ts";

/** A bucket of a call, with the parent that calls of its entity also take from. */
export interface OwnedCharge extends Charge {
  readonly parentId: string | undefined;
}

/** What a call wants of one bucket: the entity's own, or its parent's. */
export interface WantedBucket {
  readonly entityId: string;
  readonly resource: string;
  readonly amounts: Amounts;
  /** Limits that the call brought along, in place of the stored ones. */
  readonly override: Policy | undefined;
  readonly isParent: boolean;
}

/** Finds a bucket under the limits that hold for it; undefined when no limits hold. */
export type FindCharge<C extends OwnedCharge> = (wanted: WantedBucket) => C | undefined;

/**
 * Every bucket that a call takes from: for each resource the entity's, then its parent's. For
 * backends that decide locally; it throws before anything is written.
 */
export function chargesOf<C extends OwnedCharge>(
  request: ConsumeRequest,
  find: FindCharge<C>,
): readonly C[] {
  // Most calls have one resource, and need no second list.
  if (request.charges.length === 1) return chargesOn(request, request.charges[0]!, find);
  const all: C[] = [];
  for (const asked of request.charges) all.push(...chargesOn(request, asked, find));
  return all;
}

/**
 * What a call takes from a bucket under its policy. Of the entity's own bucket, every limit that
 * the call names must exist; of its parent's, only the limits that the parent has are charged.
 */
export function amountsOf({ amounts, isParent }: WantedBucket, policy: Policy): Amounts {
  if (isParent) return amountsUnder(policy, amounts);
  checkNames(amounts, policy.names, "consume");
  return amounts;
}

/** The error for an entity and a resource that no level has limits for. */
export function noLimits(entityId: string, resource: string): ValidationError {
  const reason = `no limits are configured for ${entityId} on ${resource}; set some at any level, or pass limits`;
  return new ValidationError("limits", entityId, reason);
}

/** The names of the entity's limits on each resource of a call, in the call's order. */
export function limitNamesOf(
  { entityId, charges: asked }: ConsumeRequest,
  charges: readonly Charge[],
): readonly ReadonlySet<string>[] {
  const own =
    asked.length === charges.length
      ? charges
      : charges.filter((charge) => charge.entityId === entityId);
  return own.map(({ policy }) => policy.names);
}

function chargesOn<C extends OwnedCharge>(
  { entityId, override }: ConsumeRequest,
  { resource, amounts }: ResourceAmounts,
  find: FindCharge<C>,
): readonly C[] {
  const own = find({ entityId, resource, amounts, override, isParent: false });
  if (own === undefined) throw noLimits(entityId, resource);
  const { parentId } = own;
  if (parentId === undefined) return [own];
  const parents = find({
    entityId: parentId,
    resource,
    amounts,
    override: undefined,
    isParent: true,
  });
  return parents === undefined ? [own] : [own, parents];
}
