import { nameAlias, valueAlias, type AliasFields } from "./aliases.ts";
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
 * PartiQL. Only its values are kept here: the clauses without them are a form, whose texts are made
 * once.
 */
export class ExpressionBuilder {
  readonly #values: Value[] = [];
  #form = FORMS_MEMO.empty();

  set(attribute: string, value: Value): void {
    this.#form = this.#form.with("set", attribute, this.#indexOf(value));
  }

  add(attribute: string, amount: number | bigint): void {
    if (amount !== 0) this.#form = this.#form.with("add", attribute, this.#indexOf(amount));
  }

  /** Adds to an attribute that may be missing, even 0: statements can only add to what exists. */
  begin(attribute: string, amount: number): void {
    this.#form = this.#form.with("begin", attribute, this.#indexOf(amount));
  }

  remove(attribute: string): void {
    this.#form = this.#form.with("remove", attribute, NO_VALUE);
  }

  /** Whether the update writes an attribute, so that a reply with what it wrote shows it. */
  changes(attribute: string): boolean {
    return this.#form.changes(attribute);
  }

  /** Adds a condition in the words of an update expression; all conditions must hold. */
  require(condition: string): void {
    this.#form = this.#form.with("other", condition, NO_VALUE);
  }

  requireEqual(attribute: string, value: Value): void {
    this.#form = this.#form.with("=", attribute, this.#indexOf(value));
  }

  /** Requires `least ≤ attribute ≤ most`, either of which may be absent. */
  requireWithin(
    attribute: string,
    { least, most }: { readonly least?: number | undefined; readonly most?: number | undefined },
  ): void {
    if (least !== undefined) this.#form = this.#form.with(">=", attribute, this.#indexOf(least));
    if (most !== undefined) this.#form = this.#form.with("<=", attribute, this.#indexOf(most));
  }

  /** Requires that an attribute begins with a text and is less than another one. */
  requirePrefixAndLess(attribute: string, prefix: string, bound: string): void {
    this.#form = this.#form
      .with("begins_with", attribute, this.#indexOf(prefix))
      .with("<", attribute, this.#indexOf(bound));
  }

  requireMissing(attribute: string): void {
    this.#form = this.#form.with("missing", attribute, NO_VALUE);
  }

  /** The alias of an attribute name. */
  name(attribute: string): string {
    this.#form = this.#form.with("named", attribute, NO_VALUE);
    return nameAlias(this.#form.names.indexOf(attribute));
  }

  /** The alias of a value. */
  value(value: Value): string {
    return valueAlias(this.#indexOf(value));
  }

  build(): UpdateExpression {
    const { UpdateExpression, ConditionExpression, names, aliases } = this.#form.expression;
    if (this.#values.length === 0)
      return { UpdateExpression, ConditionExpression, ExpressionAttributeNames: names };
    const values: Record<string, AttributeValue> = {};
    for (let index = 0; index < this.#values.length; index += 1)
      values[aliases[index] ?? valueAlias(index)] = marshal(this.#values[index]!);
    return {
      UpdateExpression,
      ConditionExpression,
      ExpressionAttributeNames: names,
      ExpressionAttributeValues: values,
    };
  }

  /**
   * The same as a statement, or undefined where PartiQL cannot say it on every engine. An attribute
   * that is added to must exist: PartiQL has no default for one that does not, and the statement is
   * invalid then.
   */
  statement(tableName: string, key: AttributeMap, returning: Returned): Statement | undefined {
    const form = this.#form.statement;
    if (form === undefined) return undefined;
    const { changes, conditions, changing, required } = form;
    const text = `UPDATE "${tableName}" ${changes} WHERE "PK"=? AND "SK"=?${conditions} RETURNING ${returning} *`;
    if (text.length > MAX_STATEMENT_LENGTH) return undefined;
    const parameters: AttributeValue[] = [];
    for (const index of changing) parameters.push(marshal(this.#values[index]!));
    parameters.push(key["PK"]!, key["SK"]!);
    for (const index of required) parameters.push(marshal(this.#values[index]!));
    return {
      Statement: text,
      Parameters: parameters,
      ReturnValuesOnConditionCheckFailure: "ALL_OLD",
    };
  }

  /** The same value has one alias, because a client spends microseconds on each. */
  #indexOf(value: Value): number {
    const held = this.#values.indexOf(value);
    return held >= 0 ? held : this.#values.push(value) - 1;
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
 * What a clause does with an attribute, or requires of it; `named` only gives it an alias, for a
 * condition of the kind `other`, in the words of an update expression.
 */
type ClauseKind = "set" | "add" | "begin" | "remove" | Comparison | "missing" | "named" | "other";
type Comparison = (typeof COMPARISONS)[number];
const COMPARISONS = ["=", ">=", "<=", "<", "begins_with"] as const;

/** The kinds of clauses that write a value. */
const CHANGES: ReadonlySet<ClauseKind> = new Set(["set", "add", "begin"]);

/** The value of a clause that has none. */
const NO_VALUE = -1;

/**
 * The most forms that are kept, which are about 2 MB: an update has about 20 clauses, and the
 * buckets of one policy are written in about ten ways.
 */
const MAX_FORMS = 10_000;

/**
 * The most that follow one form: eight slots are required in three ways each. Where there are more,
 * hardly one of them comes again. A form that is not kept costs a write 8 µs.
 */
const MAX_NEXT = 64;

interface Clause {
  readonly kind: ClauseKind;
  /** Or the condition, of the kind `other`. */
  readonly attribute: string;
  /** Which of the values it is about, by its place among them. */
  readonly value: number;
}

/**
 * The clauses of an update without their values: the last one, and the form before it. Updates that
 * are alike find the same form by following their clauses, and share its texts.
 */
class Form {
  readonly #last: Clause | undefined;
  readonly #before: Form | undefined;
  readonly #isKept: boolean;
  readonly #next: Form[] = [];
  #names: readonly string[] | undefined;
  #changed: ReadonlySet<string> | undefined;
  #expression: ExpressionForm | undefined;
  #statement: StatementForm | "none" | undefined;

  constructor(last?: Clause, before?: Form, isKept = true) {
    this.#last = last;
    this.#before = before;
    this.#isKept = isKept;
  }

  /** The form with one more clause. */
  with(kind: ClauseKind, attribute: string, value: number): Form {
    for (const next of this.#next) {
      const last = next.#last!;
      if (last.attribute === attribute && last.value === value && last.kind === kind) return next;
    }
    const isKept = this.#isKept && this.#next.length < MAX_NEXT && FORMS_MEMO.hasRoom();
    const next = new Form({ kind, attribute, value }, this, isKept);
    if (isKept) this.#next.push(next);
    return next;
  }

  /** The names of all attributes, in the order of their aliases. */
  get names(): readonly string[] {
    return (this.#names ??= [
      ...new Set(
        this.clauses().flatMap(({ kind, attribute }) => (kind === "other" ? [] : [attribute])),
      ),
    ]);
  }

  changes(attribute: string): boolean {
    this.#changed ??= new Set(
      this.clauses().flatMap((clause) => (CHANGES.has(clause.kind) ? [clause.attribute] : [])),
    );
    return this.#changed.has(attribute);
  }

  get expression(): ExpressionForm {
    return (this.#expression ??= expressionForm(this.clauses(), this.names));
  }

  /** Undefined where PartiQL cannot say it. */
  get statement(): StatementForm | undefined {
    this.#statement ??= statementForm(this.clauses()) ?? "none";
    return this.#statement === "none" ? undefined : this.#statement;
  }

  /** From the first to the last. */
  clauses(): readonly Clause[] {
    if (this.#last === undefined) return [];
    return [...(this.#before?.clauses() ?? []), this.#last];
  }
}

/** The forms of this process, found from the empty one. When there are too many, it begins anew. */
const FORMS_MEMO = new (class {
  #empty = new Form();
  #size = 0;

  empty(): Form {
    if (this.#size >= MAX_FORMS) {
      this.#empty = new Form();
      this.#size = 0;
    }
    return this.#empty;
  }

  /** Counts a form that is kept. */
  hasRoom(): boolean {
    this.#size += 1;
    return this.#size <= MAX_FORMS;
  }
})();

/** An update expression without its values. */
interface ExpressionForm {
  readonly UpdateExpression: string;
  readonly ConditionExpression: string;
  readonly names: Readonly<Record<string, string>>;
  /** The aliases of the values that its clauses name. */
  readonly aliases: readonly string[];
}

function expressionForm(clauses: readonly Clause[], names: readonly string[]): ExpressionForm {
  const [set, add, remove, conditions]: string[][] = [[], [], [], []];
  for (const { kind, attribute, value: index } of clauses) {
    const [name, value] = [nameAlias(names.indexOf(attribute)), valueAlias(index)];
    if (kind === "set") set!.push(`${name}=${value}`);
    else if (kind === "add" || kind === "begin") add!.push(`${name} ${value}`);
    else if (kind === "remove") remove!.push(name);
    else if (kind === "missing") conditions!.push(`attribute_not_exists(${name})`);
    else if (kind === "begins_with") conditions!.push(`begins_with(${name},${value})`);
    else if (kind === "other") conditions!.push(attribute);
    else if (kind !== "named") conditions!.push(name + kind + value);
  }
  const valueCount = Math.max(...clauses.map(({ value }) => value)) + 1;
  const parts = [listed("SET", set!), listed("ADD", add!), listed("REMOVE", remove!)];
  return {
    UpdateExpression: parts.filter((text) => text !== "").join(" "),
    ConditionExpression: conditions!.join(" AND "),
    names: Object.fromEntries(names.map((name, index) => [nameAlias(index), name])),
    aliases: Array.from({ length: valueCount }, (_, index) => valueAlias(index)),
  };
}

/** A statement without its values. */
interface StatementForm {
  readonly changes: string;
  readonly conditions: string;
  /** The values of the changes and of the conditions, in the order of their places. */
  readonly changing: readonly number[];
  readonly required: readonly number[];
}

function statementForm(clauses: readonly Clause[]): StatementForm | undefined {
  const ofKind = (...kinds: readonly ClauseKind[]): readonly Clause[] =>
    clauses.filter(({ kind }) => kinds.includes(kind));
  const removed = ofKind("remove");
  if (ofKind("other", "begin").length > 0 || removed.length > 1) return undefined;
  // dynoxide takes a quoted name with a dot for a path, and would write another attribute.
  if (clauses.some(({ attribute }) => attribute.includes("."))) return undefined;
  const [set, add] = [ofKind("set"), ofKind("add")];
  const compared = ofKind(...COMPARISONS);
  const sums = [
    ...set.map(({ attribute }) => `"${attribute}"=?`),
    ...add.map(({ attribute }) => `"${attribute}"=${operand(attribute)}+?`),
  ];
  const conditions = [
    ...compared.map(({ kind, attribute }) =>
      kind === "begins_with" ? `begins_with("${attribute}",?)` : `"${attribute}"${kind}?`,
    ),
    ...ofKind("missing").map(({ attribute }) => `"${attribute}" IS MISSING`),
  ];
  const removal = removed.map(({ attribute }) => `REMOVE "${attribute}"`);
  return {
    changes: [...(sums.length > 0 ? [`SET ${sums.join()}`] : []), ...removal].join(" "),
    conditions: conditions.map((condition) => ` AND ${condition}`).join(""),
    changing: [...set, ...add].map(({ value }) => value),
    required: compared.map(({ value }) => value),
  };
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

function listed(keyword: string, parts: readonly string[]): string {
  return parts.length === 0 ? "" : `${keyword} ${parts.join(",")}`;
}
