import type { Amounts } from "../amounts.ts";
import type { Policy } from "./policy.ts";

/**
 * What the limits of a policy are charged for the amounts of a call. A limit that counts another
 * name gets what the call states by its own name, or else what it states by that one. There are no
 * chains: only what the call itself states is counted. A counted name that no limit has is not
 * charged itself.
 */
export function countAmounts(policy: Policy, amounts: Amounts): Amounts {
  const { counts } = policy;
  if (counts === undefined) return amounts;
  const counted: Record<string, number> = {};
  for (const [limitName, name] of counts)
    if (!Object.hasOwn(amounts, limitName) && Object.hasOwn(amounts, name))
      counted[limitName] = amounts[name]!;
  for (const name in amounts) if (!isOnlyCounted(policy, name)) counted[name] = amounts[name]!;
  return counted;
}

/** Whether limits of a policy count a name that none of them has. */
export function isOnlyCounted({ names, knownNames }: Policy, name: string): boolean {
  return !names.has(name) && knownNames.has(name);
}
