import type { ConfigSource, Limit } from "zae-limiter";
import type { Colours } from "./colours.ts";
import { tableText } from "./table.ts";
import { rateText } from "./text.ts";

/** Limits as a table, or the text `none` when there are none. */
export function limitsText(limits: readonly Limit[], none: string, colours: Colours): string {
  if (limits.length === 0) return `${none}\n`;
  return tableText(["Limit", "Rate", "Burst"], limits.map(limitCells), colours);
}

/** A limit and the level that sets it. */
export interface LimitInForce {
  readonly limit: Limit;
  readonly source: ConfigSource;
}

/** The limits in force as a table, one line each, with their levels. */
export function policyText(policy: readonly LimitInForce[], colours: Colours): string {
  return tableText(
    ["Limit", "Rate", "Burst", "Set by"],
    policy.map(({ limit, source }) => [...limitCells(limit), source]),
    colours,
  );
}

/** Only a rate has a burst: a quota or session holds what its window does. */
function limitCells(limit: Limit): readonly (string | number)[] {
  return [limit.name, rateText(limit), "refillAmount" in limit ? limit.capacity : ""];
}
