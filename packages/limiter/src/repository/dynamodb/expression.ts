import { Aliases, type AliasFields } from "./aliases.ts";
import type { Value } from "./attribute-values.ts";

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

  add(attribute: string, amount: number): void {
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
