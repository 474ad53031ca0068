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
  readonly #names = new Map<string, string>();
  readonly #values: AttributeValue[] = [];

  /** The alias of an attribute; the same attribute has one alias. */
  name(attribute: string): string {
    const alias = this.#names.get(attribute) ?? `#n${this.#names.size}`;
    this.#names.set(attribute, alias);
    return alias;
  }

  /** The alias of a value. */
  value(value: Value): string {
    return `:v${this.#values.push(marshal(value)) - 1}`;
  }

  /** What goes into the request beside the expressions. */
  fields(): AliasFields {
    return {
      ...(this.#names.size > 0 && { ExpressionAttributeNames: Object.fromEntries([...this.#names].map(([name, alias]) => [alias, name])) }),
      ...(this.#values.length > 0 && {
        ExpressionAttributeValues: Object.fromEntries(this.#values.map((value, index) => [`:v${index}`, value])),
      }),
    };
  }
}

/** The condition that an item exists. */
export function exists(alias: Aliases): string {
  return `attribute_exists(${alias.name("PK")})`;
}

/** The condition that no item has the key. */
export function absent(alias: Aliases): string {
  return `attribute_not_exists(${alias.name("PK")})`;
}
