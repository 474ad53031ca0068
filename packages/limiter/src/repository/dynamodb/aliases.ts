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
  readonly #aliasesOfNames = new Map<string, string>();
  readonly #names: Record<string, string> = {};
  readonly #aliasesOfValues = new Map<Value, string>();
  readonly #values: Record<string, AttributeValue> = {};

  /** The alias of an attribute; the same attribute has one alias. */
  name(attribute: string): string {
    const held = this.#aliasesOfNames.get(attribute);
    if (held !== undefined) return held;
    const alias = NAMES[this.#aliasesOfNames.size] ?? nameAlias(this.#aliasesOfNames.size);
    this.#aliasesOfNames.set(attribute, alias);
    this.#names[alias] = attribute;
    return alias;
  }

  /** The alias of a value; the same value has one alias, because a client spends microseconds on each. */
  value(value: Value): string {
    const held = this.#aliasesOfValues.get(value);
    if (held !== undefined) return held;
    const alias = VALUES[this.#aliasesOfValues.size] ?? valueAlias(this.#aliasesOfValues.size);
    this.#aliasesOfValues.set(value, alias);
    this.#values[alias] = marshal(value);
    return alias;
  }

  /** What goes into the request beside the expressions. */
  fields(): AliasFields {
    return {
      ...(this.#aliasesOfNames.size > 0 && { ExpressionAttributeNames: this.#names }),
      ...(this.#aliasesOfValues.size > 0 && { ExpressionAttributeValues: this.#values }),
    };
  }
}

/** Aliases that are made once: more than most requests have. */
const MADE_ALIASES = 64;
const NAMES = Array.from({ length: MADE_ALIASES }, (_, index) => nameAlias(index));
const VALUES = Array.from({ length: MADE_ALIASES }, (_, index) => valueAlias(index));

/** Short, because an expression must fit 4 KB. */
function nameAlias(index: number): string {
  return `#n${index.toString(36)}`;
}

function valueAlias(index: number): string {
  return `:v${index.toString(36)}`;
}

/** The condition that an item exists. */
export function exists(alias: Aliases): string {
  return `attribute_exists(${alias.name("PK")})`;
}

/** The condition that no item has the key. */
export function absent(alias: Aliases): string {
  return `attribute_not_exists(${alias.name("PK")})`;
}
