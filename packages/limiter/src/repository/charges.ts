import { checkNames, type Amounts } from "../core/amounts.ts";
import { amountsUnder, type Charge } from "../core/decision.ts";
import { ValidationError } from "../core/errors.ts";
import type { Policy } from "../core/policy.ts";
import type { ConsumeRequest } from "./port.ts";

/** A bucket of a call, with the parent that calls of its entity also take from. */
export interface OwnedCharge extends Charge {
  readonly parentId: string | undefined;
}

/**
 * Finds the bucket of an entity and a resource under the limits that hold for it; undefined when
 * there are none.
 */
export type FindCharge<C extends OwnedCharge> = (wanted: {
  readonly entityId: string;
  readonly resource: string;
  readonly amounts: Amounts;
  readonly override: Policy | undefined;
}) => C | undefined;

/**
 * Every bucket that a call takes from: for each resource the entity's, then its parent's. For
 * backends that decide locally; it throws before anything is written.
 */
export function chargesOf<C extends OwnedCharge>(
  { entityId, charges, override }: ConsumeRequest,
  find: FindCharge<C>,
): C[] {
  const all: C[] = [];
  for (const { resource, amounts } of charges) {
    const own = find({ entityId, resource, amounts, override });
    if (own === undefined) throw noLimits(entityId, resource);
    checkNames(amounts, own.policy.names, "consume");
    all.push(own);
    if (own.parentId === undefined) continue;
    const parents = find({ entityId: own.parentId, resource, amounts, override: undefined });
    if (parents !== undefined)
      all.push({ ...parents, amounts: amountsUnder(parents.policy, amounts) });
  }
  return all;
}

/** What a call gets for whose entity and resource no level has limits. */
export function noLimits(entityId: string, resource: string): ValidationError {
  const reason = `no limits are configured for ${entityId} on ${resource}; set some at any level, or pass limits`;
  return new ValidationError("limits", entityId, reason);
}

/** The limits of each resource that a granted call named, in the call's order. */
export function limitNamesOf(
  request: ConsumeRequest,
  charges: readonly Charge[],
): readonly ReadonlySet<string>[] {
  return request.charges.map(
    ({ resource }) => charges.find((charge) => charge.resource === resource)!.policy.names,
  );
}
