/**
 * A value as programs read it: models as declared, times as ISO strings, null where the answer is
 * never.
 */
export function jsonText(value: unknown): string {
  return `${JSON.stringify(value, finiteOrNull, 2)}\n`;
}

/**
 * JSON has no Infinity. `JSON.stringify` would write null by itself; saying so keeps it on purpose.
 */
function finiteOrNull(_key: string, value: unknown): unknown {
  return typeof value === "number" && !Number.isFinite(value) ? null : value;
}
