/** A value as DynamoDB's wire format writes it; only the types that our items use. */
export type AttributeValue =
  | { /** A string. */ readonly S: string }
  | { /** A number, as its decimal digits. */ readonly N: string }
  | { /** A boolean. */ readonly BOOL: boolean }
  | { /** Nothing. */ readonly NULL: true }
  | { /** A list. */ readonly L: readonly AttributeValue[] }
  | { /** A map. */ readonly M: AttributeMap }
  | { /** A set of strings. */ readonly SS: readonly string[] };

/** An item, a key, or a map inside an item. */
export type AttributeMap = { readonly [attribute: string]: AttributeValue };

/** A value as the library uses it; integers beyond the safe range are `bigint`. */
export type Value =
  | string
  | number
  | bigint
  | boolean
  | null
  | ReadonlySet<string>
  | readonly Value[]
  | { readonly [name: string]: Value | undefined };

/** Writes one value. */
export function marshal(value: Value): AttributeValue {
  switch (typeof value) {
    case "string":
      return { S: value };
    case "bigint":
      return { N: String(value) };
    case "number":
      if (!Number.isFinite(value)) throw new TypeError(`${value} cannot be stored`);
      return { N: String(value) };
    case "boolean":
      return { BOOL: value };
    default:
  }
  if (value === null) return { NULL: true };
  if (Array.isArray(value)) return { L: (value as readonly Value[]).map(marshal) };
  if (value instanceof Set) return { SS: [...(value as ReadonlySet<string>)] };
  return { M: marshalItem(value as { readonly [name: string]: Value | undefined }) };
}

/** Writes an item; an attribute that is `undefined` is left out. */
export function marshalItem(item: {
  readonly [attribute: string]: Value | undefined;
}): AttributeMap {
  const written: [string, AttributeValue][] = [];
  for (const [attribute, value] of Object.entries(item))
    if (value !== undefined) written.push([attribute, marshal(value)]);
  // fromEntries defines own properties: no attribute name, not even __proto__, is special to it.
  return Object.fromEntries(written);
}

/** Reads one value. Types that we never write are an error: the next write would drop them. */
export function unmarshal(value: AttributeValue): Value {
  if ("S" in value) return value.S;
  if ("N" in value) return readNumber(value.N);
  if ("BOOL" in value) return value.BOOL;
  if ("NULL" in value) return null;
  if ("L" in value) return value.L.map(unmarshal);
  if ("M" in value) return unmarshalItem(value.M);
  if ("SS" in value) return new Set(value.SS);
  throw new TypeError(`Attribute type ${Object.keys(value).join()} is not supported`);
}

/** Reads an item. */
export function unmarshalItem(item: AttributeMap): { readonly [attribute: string]: Value } {
  return Object.fromEntries(
    Object.entries(item).map(([attribute, value]) => [attribute, unmarshal(value)]),
  );
}

/** Reads the text of a number: exactly, where it is an integer. */
export function readNumber(text: string): number | bigint {
  const number = Number(text);
  if (Number.isSafeInteger(number) || !/^-?\d+$/.test(text)) return number;
  return BigInt(text);
}

/** The string of an attribute; `undefined` when it is absent or something else. */
export function getString(value: AttributeValue | undefined): string | undefined {
  return value !== undefined && "S" in value ? value.S : undefined;
}

/** The number of an attribute; `undefined` when it is absent or something else. */
export function getNumber(value: AttributeValue | undefined): number | undefined {
  return value !== undefined && "N" in value ? Number(value.N) : undefined;
}

/** The boolean of an attribute; `undefined` when it is absent or something else. */
export function getBoolean(value: AttributeValue | undefined): boolean | undefined {
  return value !== undefined && "BOOL" in value ? value.BOOL : undefined;
}
