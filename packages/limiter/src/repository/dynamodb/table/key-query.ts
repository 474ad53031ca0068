import { Aliases } from "./aliases.ts";
import type { AttributeMap } from "../transport/attribute-values.ts";
import type { IndexName } from "./create-table.ts";

/** Which sort keys of a partition: all with a prefix, or a range that includes both ends. */
type SortKeyRange =
  | { readonly beginsWith: string }
  | { readonly from: string; readonly to: string };

/** What to look up in the table, or in one of its indexes. */
export interface KeyQuery {
  readonly index?: IndexName;
  readonly partition: string;
  readonly range: SortKeyRange;
  readonly newestFirst?: boolean;
  readonly limit?: number;
  /** The item to continue after: the keys of the table and of the index. */
  readonly after?: AttributeMap | undefined;
}

/** The input of a query. The table is read consistently, which indexes do not support. */
export function queryInput({
  index,
  partition,
  range,
  newestFirst,
  limit,
  after,
}: KeyQuery): object {
  const alias = new Aliases();
  const prefix = index ?? "";
  const hash = `${alias.name(`${prefix}PK`)} = ${alias.value(partition)}`;
  const sort = alias.name(`${prefix}SK`);
  const within =
    "beginsWith" in range
      ? `begins_with(${sort}, ${alias.value(range.beginsWith)})`
      : `${sort} BETWEEN ${alias.value(range.from)} AND ${alias.value(range.to)}`;
  return {
    ...(index === undefined ? { ConsistentRead: true } : { IndexName: index }),
    KeyConditionExpression: `${hash} AND ${within}`,
    ...alias.fields(),
    ...(newestFirst === true && { ScanIndexForward: false }),
    ...(limit !== undefined && { Limit: limit }),
    ...(after !== undefined && { ExclusiveStartKey: after }),
  };
}
