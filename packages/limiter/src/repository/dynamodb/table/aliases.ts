import { marshal, type AttributeValue, type Value } from "../transport/attribute-values.ts";

/**
 * The alias fields of a request; absent where nothing was aliased, because DynamoDB refuses empty
 * maps.
 */
export interface AliasFields {
  readonly ExpressionAttributeNames?: Readonly<Record<string, string>>;
  readonly ExpressionAttributeValues?: Readonly<Record<string, AttributeValue>>;
}

/**
 * The names and values of one request's expressions. Every attribute name is aliased: limit names
 * may contain `-` and `.`, and the list of words that DynamoDB reserves grows.
 *
 * @example
 * const alias = new Aliases();
 * const condition = `${alias.name("status")} = ${alias.value("active")}`; // "#n0 = :v0"
 * return { Key, ConditionExpression: condition, ...alias.fields() };
 */
export class Aliases {
  // Lists, because a request has a dozen of each: searching them is cheaper than building a map for
  // every write.
  readonly #attributes: string[] = [];
  readonly #names: Record<string, string> = {};
  readonly #given: Value[] = [];
  readonly #values: Record<string, AttributeValue> = {};

  /** The alias of an attribute; the same attribute has one alias. */
  name(attribute: string): string {
    const held = this.#attributes.indexOf(attribute);
    if (held >= 0) return nameAlias(held);
    const alias = nameAlias(this.#attributes.push(attribute) - 1);
    this.#names[alias] = attribute;
    return alias;
  }

  /**
   * The alias of a value; the same value has one alias, because a client spends microseconds on
   * each.
   */
  value(value: Value): string {
    const held = this.#given.indexOf(value);
    if (held >= 0) return valueAlias(held);
    const alias = valueAlias(this.#given.push(value) - 1);
    this.#values[alias] = marshal(value);
    return alias;
  }

  /** What goes into the request beside the expressions. */
  fields(): AliasFields {
    return {
      ...(this.#attributes.length > 0 && { ExpressionAttributeNames: this.#names }),
      ...(this.#given.length > 0 && { ExpressionAttributeValues: this.#values }),
    };
  }
}

/** Aliases that are made in advance: more than most requests have. */
const MADE_ALIASES = 64;
const NAMES = Array.from({ length: MADE_ALIASES }, (_, index) => newAlias("#n", index));
const VALUES = Array.from({ length: MADE_ALIASES }, (_, index) => newAlias(":v", index));

function nameAlias(index: number): string {
  return NAMES[index] ?? newAlias("#n", index);
}

function valueAlias(index: number): string {
  return VALUES[index] ?? newAlias(":v", index);
}

/** Short, because an expression must fit 4 KB. */
function newAlias(prefix: string, index: number): string {
  return prefix + index.toString(36);
}

/** The condition that an item exists. */
export function exists(alias: Aliases): string {
  return `attribute_exists(${alias.name("PK")})`;
}

/** The condition that no item has the key. */
export function absent(alias: Aliases): string {
  return `attribute_not_exists(${alias.name("PK")})`;
}
