import { isRecord } from "../core/amounts.ts";
import { parseCalendar } from "../core/calendar-text.ts";
import { DEFAULT_HOLD_SECONDS } from "../core/limit-text.ts";
import type { DocumentValue } from "./document.ts";

/** The numbers of a rate, which are checked one by one. */
export const NUMBER_KEYS: readonly string[] = [
  "capacity",
  "burst",
  "refill_amount",
  "refill_period",
];

/** The other keys of limits, and the names that they have in the library. */
const PARTS: ReadonlyMap<string, string> = new Map([
  ["kind", "kind"],
  ["resets", "resets"],
  ["window_seconds", "windowSeconds"],
  ["hold_seconds", "holdSeconds"],
  ["counts", "counts"],
  ["soft", "soft"],
  ["schedule", "schedule"],
  ["reserve", "reserve"],
  ["carry", "carry"],
  ["alerts", "alerts"],
]);

/** Every key of a limit that is a map. */
export const LIMIT_KEYS: readonly string[] = [...NUMBER_KEYS, ...PARTS.keys()];

/** Whether a map declares a rate: it says so, or says nothing. */
export function isRate(limit: { readonly kind?: unknown }): boolean {
  return limit.kind === undefined || limit.kind === "rate";
}

/** What is written under keys, under the names that it has in the library. Nothing is checked. */
export function readParts(fields: readonly DocumentValue[]): object {
  const parts = Object.fromEntries(
    fields.map(({ key, value }) => {
      if (key === "resets" && typeof value === "string")
        return [key, parseCalendar(value) ?? value];
      if (key === "schedule" && Array.isArray(value)) return [key, value.map(readProfile)];
      return [PARTS.get(key) ?? key, value];
    }),
  );
  const isInFlight = parts["kind"] === "inflight";
  return { ...(isInFlight && { holdSeconds: DEFAULT_HOLD_SECONDS }), ...parts };
}

function readProfile(profile: unknown): unknown {
  if (!isRecord(profile) || profile["refill_amount"] === undefined) return profile;
  const { refill_amount: refillAmount, ...rest } = profile;
  return { ...rest, refillAmount };
}

/** The advice for a limit that is more than the numbers of a rate. */
export function adviseParts(parts: object): string {
  const kind = (parts as { readonly kind?: unknown }).kind;
  const example = EXAMPLES.get(kind) ?? "kind: quota";
  return `Write ${example}, for example.`;
}

const EXAMPLES: ReadonlyMap<unknown, string> = new Map<unknown, string>([
  [undefined, "100/min[counts=tpm]"],
  ["quota", "1000000/day@Europe/Berlin"],
  ["session", "45/session(5hour)"],
  ["inflight", "20/inflight(2min)"],
]);
