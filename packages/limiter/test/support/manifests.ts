import { createHash } from "node:crypto";
import type { DeclaredLimits } from "zae-limiter";
import type { Manifest } from "zae-limiter/manifest";

/** A manifest that was never a file. */
export function manifestFor(declared: Partial<DeclaredLimits>, namespace = "default"): Manifest {
  const whole = { resources: {}, entities: {}, ...declared };
  return {
    namespace,
    declared: whole,
    hash: createHash("sha256").update(sortedText(whole)).digest("hex"),
    problemAt: (path, message, suggestion) => ({
      file: "limits.yaml",
      line: 1,
      column: 1,
      path: path.join("."),
      message,
      suggestion,
    }),
  };
}

/** The same for the same content, whatever the order of its keys and limits. */
function sortedText(value: unknown): string {
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "";
  if (Array.isArray(value)) return `[${value.map(sortedText).sort().join()}]`;
  const entries = Object.entries(value).map(([key, inner]) => `${key}:${sortedText(inner)}`);
  return `{${entries.sort().join()}}`;
}
