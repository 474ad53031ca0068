import {
  Aliases,
  getKey,
  marshalKey,
  unmarshal,
  type AttributeMap,
  type ItemKey,
  type TransactItem,
} from "zae-limiter/dynamodb-internals";

/** The change to a group of items that belong together. */
export interface Change {
  /** What they are, in the plural, such as "buckets"; reports count by it. */
  readonly kind: string;
  /** The items as they were read. */
  readonly seen: readonly AttributeMap[];
  /** The items afterwards. */
  readonly result: readonly AttributeMap[];
  /** What this library cannot enforce, in words: the upgrade then requires `force`. */
  readonly dropped?: readonly string[] | undefined;
  /** What stays as it is and is not used any more, in words. */
  readonly left?: readonly string[] | undefined;
}

/** A change that leaves an item as it is. */
export function keepItem(kind: string, item: AttributeMap): Change {
  return { kind, seen: [item], result: [item] };
}

/** Whether a change changes anything. */
export function isChange(change: Change): boolean {
  return listPuts(change).length > 0 || listDeletes(change).length > 0;
}

/** The most items that a change may read or write, so that it fits one transaction. */
export const MAX_ITEMS = 90;

/**
 * The writes of a change. Each requires its item as it was read, so a change is applied once and
 * whole, or not at all, even if others write too.
 */
export function buildWrites(change: Change): readonly TransactItem[] {
  const seen = new Map(change.seen.map((item) => [toText(getKey(item)), item]));
  return [
    ...listPuts(change).map((Item) => ({
      Put: { Item, ...asRead(seen.get(toText(getKey(Item)))) },
    })),
    ...listDeletes(change).map((item) => ({
      Delete: { Key: marshalKey(getKey(item)), ...asRead(item) },
    })),
  ];
}

function listPuts({ seen, result }: Change): readonly AttributeMap[] {
  const texts = new Set(seen.map((item) => itemText(item)));
  return result.filter((item) => !texts.has(itemText(item)));
}

function listDeletes({ seen, result }: Change): readonly AttributeMap[] {
  const kept = new Set(result.map((item) => toText(getKey(item))));
  return seen.filter((item) => !kept.has(toText(getKey(item))));
}

/** DynamoDB allows 300 operators in a condition. */
const MAX_COMPARED = 140;

/** The condition that an item is as it was read, by its plain values; or that there is none. */
function asRead(item: AttributeMap | undefined): object {
  const alias = new Aliases();
  if (item === undefined)
    return {
      ConditionExpression: `attribute_not_exists(${alias.name("PK")})`,
      ...alias.fields(),
    };
  const compared = Object.entries(item)
    .filter(([, value]) => "S" in value || "N" in value || "BOOL" in value)
    // Attributes that every call changes come first.
    .sort(([left], [right]) => rank(left) - rank(right))
    .slice(0, MAX_COMPARED);
  const conditions = compared.map(
    ([attribute, value]) => `${alias.name(attribute)}=${alias.value(unmarshal(value))}`,
  );
  return { ConditionExpression: conditions.join(" AND "), ...alias.fields() };
}

function rank(attribute: string): number {
  return attribute === "rf" || /_t[kc]$/.test(attribute) ? 0 : 1;
}

function toText({ PK, SK }: ItemKey): string {
  return `${PK}\n${SK}`;
}

/** A text that two items share exactly when they are equal. */
function itemText(item: AttributeMap): string {
  return JSON.stringify(sortKeys(item));
}

function sortKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortKeys);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).sort(([left], [right]) => (left < right ? -1 : 1));
  return entries.map(([name, inner]) => [name, sortKeys(inner)]);
}
