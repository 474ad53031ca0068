import type { Amounts } from "../amounts.ts";
import type { Policy } from "./policy.ts";

/**
 * What the limits of a policy are charged for the amounts of a call. A limit that counts another
 * name gets what the call states by its own name, or else what it states by that one. There are no
 * chains: only what the call itself states is counted. A name that is counted and is no limit is
 * not charged itself.
 */
export function countAmounts({ counts, names }: Policy, amounts: Amounts): Amounts {
  if (counts === undefined) return amounts;
  const counted: Record<string, number> = {};
  for (const [limitName, name] of counts)
    if (!Object.hasOwn(amounts, limitName) && Object.hasOwn(amounts, name))
      counted[limitName] = amounts[name]!;
  for (const name in amounts)
    if (!isOnlyCounted({ counts, names }, name)) counted[name] = amounts[name]!;
  return counted;
}

/** Whether limits of a policy count a name that is none of them. */
export function isOnlyCounted(
  { counts, names }: Pick<Policy, "counts" | "names">,
  name: string,
): boolean {
  if (counts === undefined || names.has(name)) return false;
  for (const counted of counts.values()) if (counted === name) return true;
  return false;
}
