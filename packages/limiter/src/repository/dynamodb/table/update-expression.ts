import {
  marshal,
  type AttributeMap,
  type AttributeValue,
  type Value,
} from "../transport/attribute-values.ts";

/** The parts of an UpdateItem call that an expression makes. */
export interface UpdateExpression extends AliasFields {
  readonly UpdateExpression: string;
  readonly ConditionExpression: string;
}

/** A statement of PartiQL, which says the same as an update expression. */
export interface Statement {
  readonly Statement: string;
  readonly Parameters: readonly AttributeValue[];
}

/** What an attribute is compared with, and how. */
interface Comparison {
  readonly attribute: string;
  readonly operator: "=" | ">=" | "<=" | "<" | "begins_with";
  readonly value: Value;
}

/**
 * Collects the clauses of one update, which is sent as an update expression or as a statement of
 * PartiQL. Both are written without the spaces that DynamoDB does not need: an expression must fit
 * 4 KB.
 */
export class ExpressionBuilder {
  readonly #aliases = new Aliases();
  readonly #set: (readonly [attribute: string, value: Value])[] = [];
  readonly #add: (readonly [attribute: string, amount: number | bigint])[] = [];
  readonly #remove: string[] = [];
  readonly #comparisons: Comparison[] = [];
  readonly #missing: string[] = [];
  /** Conditions that only an update expression can have. */
  readonly #otherConditions: string[] = [];

  set(attribute: string, value: Value): void {
    this.#set.push([attribute, value]);
  }

  add(attribute: string, amount: number | bigint): void {
    if (amount !== 0) this.#add.push([attribute, amount]);
  }

  remove(attribute: string): void {
    this.#remove.push(attribute);
  }

  /** Whether the update writes an attribute, so that a reply with what it wrote shows it. */
  changes(attribute: string): boolean {
    const isIt = ([name]: readonly [string, unknown]): boolean => name === attribute;
    return this.#set.some(isIt) || this.#add.some(isIt);
  }

  /** Adds a condition in the words of an update expression; all conditions must hold. */
  require(condition: string): void {
    this.#otherConditions.push(condition);
  }

  requireEqual(attribute: string, value: Value): void {
    this.#comparisons.push({ attribute, operator: "=", value });
  }

  /** Requires `least ≤ attribute ≤ most`, either of which may be absent. */
  requireWithin(
    attribute: string,
    { least, most }: { readonly least?: number | undefined; readonly most?: number | undefined },
  ): void {
    if (least !== undefined) this.#comparisons.push({ attribute, operator: ">=", value: least });
    if (most !== undefined) this.#comparisons.push({ attribute, operator: "<=", value: most });
  }

  /** Requires that an attribute begins with a text and is less than another one. */
  requirePrefixAndLess(attribute: string, prefix: string, bound: string): void {
    this.#comparisons.push({ attribute, operator: "begins_with", value: prefix });
    this.#comparisons.push({ attribute, operator: "<", value: bound });
  }

  requireMissing(attribute: string): void {
    this.#missing.push(attribute);
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
      clause(
        "SET",
        this.#set.map(([attribute, value]) => `${this.name(attribute)}=${this.value(value)}`),
      ),
      clause(
        "ADD",
        this.#add.map(([attribute, amount]) => `${this.name(attribute)} ${this.value(amount)}`),
      ),
      clause(
        "REMOVE",
        this.#remove.map((attribute) => this.name(attribute)),
      ),
    ].filter((text) => text !== "");
    const conditions = [
      ...this.#comparisons.map((comparison) => this.#condition(comparison)),
      ...this.#missing.map((attribute) => `attribute_not_exists(${this.name(attribute)})`),
      ...this.#otherConditions,
    ];
    return {
      UpdateExpression: clauses.join(" "),
      ConditionExpression: conditions.join(" AND "),
      ...this.#aliases.fields(),
    };
  }

  /**
   * The same as a statement, or undefined where PartiQL cannot say it on every engine. An attribute
   * that is added to must exist: PartiQL has no default for one that does not, and the statement is
   * invalid then.
   */
  statement({ tableName, key, returning }: StatementTarget): Statement | undefined {
    if (this.#otherConditions.length > 0 || this.#remove.length > 1) return undefined;
    const parameters: AttributeValue[] = [];
    let changes = "";
    for (const [attribute, value] of this.#set) {
      changes += `${changes === "" ? "SET " : ","}"${attribute}"=?`;
      parameters.push(marshal(value));
    }
    for (const [attribute, amount] of this.#add) {
      changes += `${changes === "" ? "SET " : ","}"${attribute}"=${operand(attribute)}+?`;
      parameters.push(marshal(amount));
    }
    if (this.#remove.length > 0) changes += ` REMOVE "${this.#remove[0]}"`;
    let conditions = "";
    parameters.push(key["PK"]!, key["SK"]!);
    for (const { attribute, operator, value } of this.#comparisons) {
      conditions +=
        operator === "begins_with"
          ? ` AND begins_with("${attribute}",?)`
          : ` AND "${attribute}"${operator}?`;
      parameters.push(marshal(value));
    }
    for (const attribute of this.#missing) conditions += ` AND "${attribute}" IS MISSING`;
    const text = `UPDATE "${tableName}" ${changes} WHERE "PK"=? AND "SK"=?${conditions} RETURNING ${returning} *`;
    return text.length > MAX_STATEMENT_LENGTH
      ? undefined
      : { Statement: text, Parameters: parameters };
  }

  #condition({ attribute, operator, value }: Comparison): string {
    const [name, alias] = [this.name(attribute), this.value(value)];
    return operator === "begins_with" ? `begins_with(${name},${alias})` : name + operator + alias;
  }
}

/** What a statement is about. */
interface StatementTarget {
  readonly tableName: string;
  readonly key: AttributeMap;
  readonly returning: "ALL NEW" | "MODIFIED NEW";
}

/** DynamoDB's own limit, in characters. All our names are ASCII. */
const MAX_STATEMENT_LENGTH = 8192;

/**
 * The name of an attribute within a sum. It is bare where it can be: dynoxide does not read a
 * quoted one there. No engine ignores the case of bare names, and none of our counters has the name
 * of a keyword.
 */
function operand(attribute: string): string {
  return /^[A-Za-z_]\w*$/.test(attribute) ? attribute : `"${attribute}"`;
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
