import type { Limit } from "zae-limiter";
import type { Colours } from "./colours.ts";
import { tableText } from "./table.ts";
import { rateText } from "./text.ts";

/** Limits as a table, or the text `none` when there are none. */
export function limitsText(limits: readonly Limit[], none: string, colours: Colours): string {
  if (limits.length === 0) return `${none}\n`;
  return tableText(
    ["Limit", "Rate", "Burst"],
    limits.map((limit) => [limit.name, rateText(limit), limit.capacity]),
    colours,
  );
}
