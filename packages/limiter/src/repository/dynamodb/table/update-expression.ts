import { Aliases, type AliasFields } from "./aliases.ts";
import type { ItemKey } from "./batch.ts";
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
  readonly ReturnValuesOnConditionCheckFailure: "ALL_OLD";
}

/**
 * Collects the clauses of one update, which is sent as an update expression or as a statement of
 * PartiQL.
 */
export class ExpressionBuilder {
  readonly #clauses: Clause[] = [];
  readonly #aliases = new Aliases();

  set(attribute: string, value: Value): void {
    this.#clauses.push({ kind: "set", attribute, value });
  }

  add(attribute: string, amount: number | bigint): void {
    if (amount !== 0) this.#clauses.push({ kind: "add", attribute, value: amount });
  }

  /** Adds to an attribute that may be missing, even 0: statements can only add to what exists. */
  begin(attribute: string, amount: number): void {
    this.#clauses.push({ kind: "begin", attribute, value: amount });
  }

  remove(attribute: string): void {
    this.#clauses.push({ kind: "remove", attribute });
  }

  /** Whether the update writes an attribute, so that a reply with what it wrote shows it. */
  changes(attribute: string): boolean {
    return this.#clauses.some(
      (clause) => clause.attribute === attribute && CHANGES.has(clause.kind),
    );
  }

  /** Adds a condition in the words of an update expression; all conditions must hold. */
  require(condition: string): void {
    this.#clauses.push({ kind: "other", attribute: condition });
  }

  requireEqual(attribute: string, value: Value): void {
    this.#clauses.push({ kind: "=", attribute, value });
  }

  /** Requires `least ≤ attribute ≤ most`, either of which may be absent. */
  requireWithin(
    attribute: string,
    { least, most }: { readonly least?: number | undefined; readonly most?: number | undefined },
  ): void {
    if (least !== undefined) this.#clauses.push({ kind: ">=", attribute, value: least });
    if (most !== undefined) this.#clauses.push({ kind: "<=", attribute, value: most });
  }

  /** Requires that an attribute begins with a text and is less than another one. */
  requirePrefixAndLess(attribute: string, prefix: string, bound: string): void {
    this.#clauses.push({ kind: "begins_with", attribute, value: prefix });
    this.#clauses.push({ kind: "<", attribute, value: bound });
  }

  requireMissing(attribute: string): void {
    this.#clauses.push({ kind: "missing", attribute });
  }

  /** The alias of an attribute name, for a condition in the words of an update expression. */
  name(attribute: string): string {
    return this.#aliases.name(attribute);
  }

  /** The alias of a value. */
  value(value: Value): string {
    return this.#aliases.value(value);
  }

  build(): UpdateExpression {
    let [set, add, remove, conditions] = ["", "", "", ""];
    for (const { kind, attribute, value } of this.#clauses) {
      if (kind === "other") {
        conditions += `${and(conditions)}${attribute}`;
        continue;
      }
      const name = this.#aliases.name(attribute);
      const alias = value === undefined ? "" : this.#aliases.value(value);
      if (kind === "set") set += `${set && ","}${name}=${alias}`;
      else if (kind === "add" || kind === "begin") add += `${add && ","}${name} ${alias}`;
      else if (kind === "remove") remove += `${remove && ","}${name}`;
      else if (kind === "missing") conditions += `${and(conditions)}attribute_not_exists(${name})`;
      else if (kind === "begins_with")
        conditions += `${and(conditions)}begins_with(${name},${alias})`;
      else conditions += and(conditions) + name + kind + alias;
    }
    const parts = [set && `SET ${set}`, add && `ADD ${add}`, remove && `REMOVE ${remove}`];
    return {
      UpdateExpression: parts.filter((text) => text !== "").join(" "),
      ConditionExpression: conditions,
      ...this.#aliases.fields(),
    };
  }

  /**
   * The same as a statement, or undefined where PartiQL cannot say it on every engine. An attribute
   * that is added to must exist: PartiQL has no default for one that does not, and the statement is
   * invalid then.
   */
  statement(tableName: string, key: AttributeMap, returning: Returned): Statement | undefined {
    let [changes, removal, conditions] = ["", "", ""];
    const [changed, required]: AttributeValue[][] = [[], []];
    for (const { kind, attribute, value } of this.#clauses) {
      // dynoxide takes a quoted name with a dot for a path, and would write another attribute.
      if (kind === "other" || kind === "begin" || attribute.includes(".")) return undefined;
      const name = `"${attribute}"`;
      if (kind === "remove") {
        if (removal !== "") return undefined;
        removal = ` REMOVE ${name}`;
      } else if (kind === "missing") conditions += ` AND ${name} IS MISSING`;
      else if (CHANGES.has(kind)) {
        changes += `${changes && ","}${name}=${kind === "add" ? `${operand(attribute)}+` : ""}?`;
        changed!.push(marshal(value!));
      } else {
        conditions +=
          kind === "begins_with" ? ` AND begins_with(${name},?)` : ` AND ${name}${kind}?`;
        required!.push(marshal(value!));
      }
    }
    const text = `UPDATE "${tableName}"${changes && ` SET ${changes}`}${removal} WHERE "PK"=? AND "SK"=?${conditions} RETURNING ${returning} *`;
    if (text.length > MAX_STATEMENT_LENGTH) return undefined;
    return {
      Statement: text,
      Parameters: [...changed!, key["PK"]!, key["SK"]!, ...required!],
      ReturnValuesOnConditionCheckFailure: "ALL_OLD",
    };
  }
}

/** The key of an item that is written, in the forms that requests and caches need. */
export interface WrittenKey {
  readonly primary: ItemKey;
  /** The primary key as requests carry it. */
  readonly marshalled: AttributeMap;
  /** The partition key, which no two items that are written have in common. */
  readonly text: string;
}

/** One conditional write of one item, in the two forms in which it can be sent. */
export interface ItemWrite {
  readonly operation: "UpdateItem" | "PutItem";
  readonly key: WrittenKey;
  /** The input of the operation, for a request of its own. */
  input(tableName: string): object;
  /** The write as a statement, for a request that it shares; undefined where it cannot be one. */
  statement(tableName: string): Statement | undefined;
}

/** How much of the item a reply shows. */
const RETURNED = { ALL_NEW: "ALL NEW", UPDATED_NEW: "MODIFIED NEW" } as const;
type Returned = (typeof RETURNED)[keyof typeof RETURNED];

/** A conditional update of one item. */
export class ItemUpdate implements ItemWrite {
  readonly operation = "UpdateItem";
  readonly key: WrittenKey;
  readonly returns: keyof typeof RETURNED;
  readonly #expression: ExpressionBuilder;

  constructor(
    key: WrittenKey,
    expression: ExpressionBuilder,
    returns: keyof typeof RETURNED = "ALL_NEW",
  ) {
    this.key = key;
    this.#expression = expression;
    this.returns = returns;
  }

  input(tableName: string): object {
    const built = this.#expression.build();
    return {
      TableName: tableName,
      Key: this.key.marshalled,
      UpdateExpression: built.UpdateExpression,
      ConditionExpression: built.ConditionExpression,
      ExpressionAttributeNames: built.ExpressionAttributeNames,
      ExpressionAttributeValues: built.ExpressionAttributeValues,
      ReturnValues: this.returns,
      ReturnValuesOnConditionCheckFailure: "ALL_OLD",
    };
  }

  statement(tableName: string): Statement | undefined {
    return this.#expression.statement(tableName, this.key.marshalled, RETURNED[this.returns]);
  }
}

/**
 * What a clause does with an attribute, or requires of it; `other` is a condition in the words of
 * an update expression.
 */
type ClauseKind =
  | "set"
  | "add"
  | "begin"
  | "remove"
  | "="
  | ">="
  | "<="
  | "<"
  | "begins_with"
  | "missing"
  | "other";

/** The kinds of clauses that write a value. */
const CHANGES: ReadonlySet<ClauseKind> = new Set(["set", "add", "begin"]);

interface Clause {
  readonly kind: ClauseKind;
  /** Or the condition, of the kind `other`. */
  readonly attribute: string;
  /** Undefined in a clause that has none. */
  readonly value?: Value;
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

/** What goes between these conditions and the next one. */
function and(conditions: string): string {
  return conditions === "" ? "" : " AND ";
}
