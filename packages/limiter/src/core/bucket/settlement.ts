import { amountOf, type Amounts } from "../amounts.ts";
import type { Policy } from "./policy.ts";

/**
 * What one take of a lease took from one bucket. A lease that takes more has several, also of the
 * same bucket.
 */
export interface TakenPart {
  readonly entityId: string;
  readonly resource: string;
  readonly policy: Policy;
  readonly amounts: Amounts;
}

/**
 * Which bucket bears which part of a lease's differences, for one resource. Between two takes of a
 * lease, the parent may have become another one, a bucket may have been deleted, or a parent's
 * limits may have changed, so the parts need not look alike. More than was taken is charged to the
 * last bucket that has the limit. Less goes back to where it came from, last taken first, and never
 * more to a bucket than was taken from it. Both hold for the entity and, apart from it, for its
 * parent.
 */
export function settlementOf<Part extends TakenPart>(
  parts: readonly Part[],
  resource: string,
  deltas: Amounts,
): readonly { readonly part: Part; readonly amounts: Amounts }[] {
  const ownId = parts[0]?.entityId;
  const ofResource = parts.filter((part) => part.resource === resource);
  const own = ofResource.filter((part) => part.entityId === ownId);
  const parents = ofResource.filter((part) => part.entityId !== ownId);
  return [...spread(own, deltas), ...spread(parents, deltas)].filter(
    ({ amounts }) => Object.keys(amounts).length > 0,
  );
}

function spread<Part extends TakenPart>(
  parts: readonly Part[],
  deltas: Amounts,
): { part: Part; amounts: Amounts }[] {
  const left = new Map(Object.entries(deltas));
  return parts.toReversed().map((part) => {
    const borne = Object.keys(deltas).flatMap((name) => {
      const delta = left.get(name)!;
      if (!part.policy.names.has(name) || delta === 0) return [];
      const share = delta > 0 ? delta : Math.max(delta, -amountOf(part.amounts, name));
      left.set(name, delta - share);
      return share === 0 ? [] : [[name, share] as const];
    });
    return { part, amounts: Object.fromEntries(borne) };
  });
}
