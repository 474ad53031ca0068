/**
 * JSON for programs: models as they are declared, times as ISO strings, and null for a wait that
 * never ends.
 */
export function jsonText(value: unknown): string {
  return `${JSON.stringify(value, finiteOrNull, 2)}\n`;
}

/** JSON has no Infinity. `JSON.stringify` writes null anyway; this shows that it is intended. */
function finiteOrNull(_key: string, value: unknown): unknown {
  return typeof value === "number" && !Number.isFinite(value) ? null : value;
}
