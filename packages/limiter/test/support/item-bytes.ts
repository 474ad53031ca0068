import type { AttributeMap } from "../../src/repository/dynamodb/transport/attribute-values.ts";

/**
 * The size of an item as DynamoDB counts it for the bill: names and strings by their UTF-8 bytes,
 * numbers by about a byte for two digits and one more, two when they are negative. Not counted: the
 * 100 bytes for each item that only storage is billed for.
 */
export function itemBytes(item: AttributeMap): number {
  return Object.entries(item).reduce(
    (sum, [name, value]) => sum + Buffer.byteLength(name) + valueBytes(value),
    0,
  );
}

function valueBytes(value: AttributeMap[string]): number {
  if ("S" in value && value.S !== undefined) return Buffer.byteLength(value.S);
  if ("N" in value && value.N !== undefined) return numberBytes(value.N);
  return 1;
}

function numberBytes(text: string): number {
  const isNegative = text.startsWith("-");
  const digits = text.replace(/^-/, "").replace(".", "").replace(/^0+/, "").replace(/0+$/, "");
  return Math.ceil(digits.length / 2) + 1 + (isNegative ? 1 : 0);
}
