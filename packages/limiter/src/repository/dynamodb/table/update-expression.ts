import { marshal, type AttributeValue, type Value } from "../transport/attribute-values.ts";

/** The parts of an UpdateItem call that an expression makes. */
export interface UpdateExpression extends AliasFields {
  readonly UpdateExpression: string;
  readonly ConditionExpression: string;
}

/**
 * Collects the clauses of one update. They are written without the spaces that DynamoDB does not
 * need: an expression must fit 4 KB.
 */
export class ExpressionBuilder {
  readonly #aliases = new Aliases();
  readonly #set: string[] = [];
  readonly #add: string[] = [];
  readonly #remove: string[] = [];
  readonly #conditions: string[] = [];
  readonly #changed: string[] = [];

  set(attribute: string, value: Value): void {
    this.#changed.push(attribute);
    this.#set.push(`${this.name(attribute)}=${this.value(value)}`);
  }

  add(attribute: string, amount: number | bigint): void {
    if (amount === 0) return;
    this.#changed.push(attribute);
    this.#add.push(`${this.name(attribute)} ${this.value(amount)}`);
  }

  remove(attribute: string): void {
    this.#remove.push(this.name(attribute));
  }

  /** Whether the update writes an attribute, so that a reply with what it wrote shows it. */
  changes(attribute: string): boolean {
    return this.#changed.includes(attribute);
  }

  /** Adds a condition; all of them must hold. */
  require(condition: string): void {
    this.#conditions.push(condition);
  }

  requireEqual(attribute: string, value: Value): void {
    this.require(`${this.name(attribute)}=${this.value(value)}`);
  }

  /** Requires `least ≤ attribute ≤ most`, either of which may be absent. */
  requireWithin(
    attribute: string,
    { least, most }: { readonly least?: number | undefined; readonly most?: number | undefined },
  ): void {
    if (least !== undefined) this.require(`${this.name(attribute)}>=${this.value(least)}`);
    if (most !== undefined) this.require(`${this.name(attribute)}<=${this.value(most)}`);
  }

  /** The alias of an attribute name. */
  name(attribute: string): string {
    return this.#aliases.name(attribute);
  }

  /** The alias of a value. */
  value(value: Value): string {
    return this.#aliases.value(value);
  }

  build(): UpdateExpression {
    const clauses = [
      clause("SET", this.#set),
      clause("ADD", this.#add),
      clause("REMOVE", this.#remove),
    ].filter((text) => text !== "");
    return {
      UpdateExpression: clauses.join(" "),
      ConditionExpression: this.#conditions.join(" AND "),
      ...this.#aliases.fields(),
    };
  }
}

function clause(keyword: string, parts: readonly string[]): string {
  return parts.length === 0 ? "" : `${keyword} ${parts.join(",")}`;
}

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
