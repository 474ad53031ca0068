import type { Connection, SqlValue } from "../database/connection.ts";
import type { PurgeOptions } from "../../repository.ts";
import type { Transactions } from "./transactions.ts";

/** Rows of one table. */
interface Rows {
  readonly table: string;
  /** The columns that identify one of them. */
  readonly key: string;
  readonly where: string;
  readonly values: readonly SqlValue[];
}

/** Rows removed in one step, which takes a millisecond or two. */
const REMOVED_PER_STEP = 200;

/**
 * Removes rows a few hundred at a time, each in its own transaction. Other calls get their turn in
 * between, and an interrupted removal continues where it stopped. Returns how many they were.
 */
export async function removeRows(
  {
    connection,
    transactions,
  }: { readonly connection: Connection; readonly transactions: Transactions },
  { table, key, where, values }: Rows,
  { onProgress, signal }: PurgeOptions,
): Promise<number> {
  const sql = `DELETE FROM ${table} WHERE ${where} AND (${key}) IN (SELECT ${key} FROM ${table} WHERE ${where} LIMIT ?)`;
  let removed = 0;
  for (let last = REMOVED_PER_STEP; last === REMOVED_PER_STEP; removed += last) {
    signal?.throwIfAborted();
    last = await transactions.alone(() =>
      connection.run(sql, ...values, ...values, REMOVED_PER_STEP),
    );
    if (last > 0) onProgress?.(removed + last);
  }
  return removed;
}
