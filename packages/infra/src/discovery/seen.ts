import type { Seen, Unknown } from "./status-model.ts";

/** Whether a part could not be seen. */
export function isUnknown(part: unknown): part is Unknown {
  return typeof part === "object" && part !== null && "unknown" in part;
}

/** A part that was seen; undefined if there is none, or if it is unknown. */
export function known<T>(part: Seen<T>): T | undefined {
  return isUnknown(part) ? undefined : part;
}
