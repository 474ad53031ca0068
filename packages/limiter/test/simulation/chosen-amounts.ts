import { leastAvailable } from "./compare.ts";
import { RESOURCES } from "./fixtures.ts";
import type { Call, Want } from "../oracle/oracle.ts";
import type { Tokens } from "../oracle/oracle-bucket.ts";
import { toTerms } from "../oracle/terms.ts";
import type { AcquireStep, AmountChoice, ChargeStep } from "./steps.ts";
import type { World } from "./world.ts";

/** What a step wants: of its own resource, and perhaps of another. */
export function chosenWants(
  world: World,
  { entityId, resource, amounts, also }: AcquireStep | ChargeStep,
  override: Call["override"],
  nowMs: number,
): readonly [Want, ...Want[]] {
  const own = {
    resource,
    tokens: chosenAmounts(world, { entityId, resource, override }, amounts, nowMs),
  };
  if (also === undefined || override !== undefined) return [own];
  const further = RESOURCES.find((other) => other !== resource)!;
  const tokens = chosenAmounts(world, { entityId, resource: further }, also, nowMs);
  return [own, { resource: further, tokens }];
}

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
  const claims = verdict.kind === "invalid" ? [] : verdict.claims;
  const amounts: Record<string, number> = {};
  for (const { name, mode, tokens } of choices) {
    const terms = claims[0]?.wanted.find((candidate) => candidate.name === name);
    if (terms === undefined) {
      const isKnown = world.oracle.config.knows(entityId, resource, name);
      if (isKnown || mode === "more than capacity") amounts[name] = tokens;
      continue;
    }
    const all = Math.max(0, leastAvailable(claims, name, nowMs));
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

/**
 * Whether limits that a call brought along are of other kinds or windows than its bucket has by
 * now: that an override cannot change them is for the contract to test.
 */
export function isOutdated(
  { oracle }: World,
  {
    entityId,
    resource,
    override = [],
  }: { readonly entityId: string; readonly resource: string; readonly override: Call["override"] },
): boolean {
  const balances = oracle.bucket(entityId, resource)?.balances ?? [];
  return override.map(toTerms).some(({ name, window }) => {
    const held = balances.find(({ terms, hidden }) => !hidden && terms.name === name);
    return held !== undefined && held.terms.window?.definition !== window?.definition;
  });
}
