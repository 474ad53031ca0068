import { printable } from "./text.ts";

/**
 * JSON for programs: models as they are declared, times as ISO strings, and null for a wait that
 * never ends. It may be shown on a terminal, so its texts are escaped like others.
 */
export function jsonText(value: unknown): string {
  const lines = JSON.stringify(value, finiteOrNull, 2).split("\n");
  return `${lines.map(printable).join("\n")}\n`;
}

/** JSON has no Infinity. `JSON.stringify` writes null anyway; this shows that it is intended. */
function finiteOrNull(_key: string, value: unknown): unknown {
  return typeof value === "number" && !Number.isFinite(value) ? null : value;
}
