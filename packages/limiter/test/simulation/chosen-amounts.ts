import { leastAvailable } from "./compare.ts";
import type { Call } from "../oracle/oracle.ts";
import type { Tokens } from "../oracle/oracle-bucket.ts";
import type { AmountChoice } from "./steps.ts";
import type { World } from "./world.ts";

/**
 * Amounts for a call, in proportion to what is there. Names that no level knows are mostly left
 * out.
 */
export function chosenAmounts(
  world: World,
  of: {
    readonly entityId: string;
    readonly resource: string;
    readonly override?: Call["override"];
  },
  choices: readonly AmountChoice[],
  nowMs: number,
): Tokens {
  const { entityId, resource, override } = of;
  const verdict = world.oracle.decide(
    { entityId, wants: [{ resource, tokens: {} }], override },
    nowMs,
  );
  const charges = verdict.kind === "invalid" ? [] : verdict.charges;
  const amounts: Record<string, number> = {};
  for (const { name, mode, tokens } of choices) {
    const terms = charges[0]?.wanted.find((candidate) => candidate.name === name);
    if (terms === undefined) {
      const isKnown = world.oracle.config.knows(entityId, resource, name);
      if (isKnown || mode === "more than capacity") amounts[name] = tokens;
      continue;
    }
    const all = Math.max(0, leastAvailable(charges, name, nowMs));
    const capacity = Number(terms.capacityMilli / 1000n);
    amounts[name] = {
      fixed: tokens,
      all,
      "one too many": Math.min(all + 1, capacity),
      capacity,
      "more than capacity": capacity + 1,
    }[mode];
    if (mode === "more than capacity" && tokens > 2) amounts[name] = Math.floor(all / 2);
  }
  return amounts;
}
