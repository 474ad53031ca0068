import type { AttributeMap } from "../transport/attribute-values.ts";
import type { ItemKey } from "./batch.ts";
import type { ExpressionBuilder, Statement } from "./update-expression.ts";

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
  readonly input: object;
  /** The write as a statement, for a request that it shares; undefined where it cannot be one. */
  statement(tableName: string): Statement | undefined;
}

/** How much of the item a reply shows. */
const RETURNED = { ALL_NEW: "ALL NEW", UPDATED_NEW: "MODIFIED NEW" } as const;

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

  get input(): object {
    return {
      Key: this.key.marshalled,
      ...this.#expression.build(),
      ReturnValues: this.returns,
      ReturnValuesOnConditionCheckFailure: "ALL_OLD",
    };
  }

  statement(tableName: string): Statement | undefined {
    return this.#expression.statement({
      tableName,
      key: this.key.marshalled,
      returning: RETURNED[this.returns],
    });
  }
}
