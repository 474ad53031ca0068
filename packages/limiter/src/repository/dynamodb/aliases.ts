import { marshal, type AttributeValue, type Value } from "./attribute-values.ts";

/** The alias fields of a request; absent where nothing was aliased, because DynamoDB refuses empty maps. */
export interface AliasFields {
  readonly ExpressionAttributeNames?: Readonly<Record<string, string>>;
  readonly ExpressionAttributeValues?: Readonly<Record<string, AttributeValue>>;
}

/**
 * The names and values of one request's expressions. Every attribute name is aliased: limit names may hold `-` and `.`, and the list of
 * words that DynamoDB reserves grows.
 *
 * @example
 * const alias = new Aliases();
 * const condition = `${alias.name("status")} = ${alias.value("active")}`; // "#n0 = :v0"
 * return { Key, ConditionExpression: condition, ...alias.fields() };
 */
export class Aliases {
  // Lists, because a request has a dozen of each: looking through them is cheaper than to build a map for every write.
  readonly #attributes: string[] = [];
  readonly #names: Record<string, string> = {};
  readonly #given: Value[] = [];
  readonly #values: Record<string, AttributeValue> = {};

  /** The alias of an attribute; the same attribute has one alias. */
  name(attribute: string): string {
    const held = this.#attributes.indexOf(attribute);
    if (held >= 0) return nth(NAMES, held, "#n");
    const alias = nth(NAMES, this.#attributes.push(attribute) - 1, "#n");
    this.#names[alias] = attribute;
    return alias;
  }

  /** The alias of a value; the same value has one alias, because a client spends microseconds on each. */
  value(value: Value): string {
    const held = this.#given.indexOf(value);
    if (held >= 0) return nth(VALUES, held, ":v");
    const alias = nth(VALUES, this.#given.push(value) - 1, ":v");
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

/** Aliases that are made once: more than most requests have. */
const MADE_ALIASES = 64;
const NAMES = Array.from({ length: MADE_ALIASES }, (_, index) => `#n${index}`);
const VALUES = Array.from({ length: MADE_ALIASES }, (_, index) => `:v${index}`);

function nth(made: readonly string[], index: number, prefix: string): string {
  return made[index] ?? `${prefix}${index}`;
}

/** The condition that an item exists. */
export function exists(alias: Aliases): string {
  return `attribute_exists(${alias.name("PK")})`;
}

/** The condition that no item has the key. */
export function absent(alias: Aliases): string {
  return `attribute_not_exists(${alias.name("PK")})`;
}
