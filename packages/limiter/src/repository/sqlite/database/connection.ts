import type { SqliteDatabase, SqliteStatement } from "./driver.ts";

/** Values that can be bound. All drivers accept these, but differ on undefined and booleans. */
export type SqlValue = string | number | null;

/** A row by column name. libsql adds a column `_metadata`, which is ignored. */
export type Row = Readonly<Record<string, SqlValue>>;

interface AnyStatement {
  run(...values: readonly SqlValue[]): {
    readonly changes: number | bigint;
    readonly lastInsertRowid: number | bigint;
  };
  get(...values: readonly SqlValue[]): Row | undefined;
  all(...values: readonly SqlValue[]): readonly Row[];
}

/**
 * A database that prepares each statement once. Parameters are plain `?`, because drivers disagree
 * whether `?1` is bound by position or by name. All SQL texts are constants, so the number of
 * prepared statements is bounded.
 */
export class Connection {
  readonly #database: SqliteDatabase;
  readonly #statements = new Map<string, AnyStatement>();

  constructor(database: SqliteDatabase) {
    this.#database = database;
  }

  /** Runs statements without parameters or results. */
  exec(sql: string): void {
    this.#database.exec(sql);
  }

  row(sql: string, ...values: readonly SqlValue[]): Row | undefined {
    return this.#statement(sql).get(...values) ?? undefined;
  }

  rows(sql: string, ...values: readonly SqlValue[]): readonly Row[] {
    return this.#statement(sql).all(...values);
  }

  /** Runs a change and returns the number of affected rows. */
  run(sql: string, ...values: readonly SqlValue[]): number {
    return Number(this.#statement(sql).run(...values).changes);
  }

  /** Inserts one row and returns its id. */
  insert(sql: string, ...values: readonly SqlValue[]): number {
    return Number(this.#statement(sql).run(...values).lastInsertRowid);
  }

  close(): void {
    this.#statements.clear();
    this.#database.close();
  }

  #statement(sql: string): AnyStatement {
    const held = this.#statements.get(sql);
    if (held !== undefined) return held;
    const statement = usable(this.#database.prepare(sql));
    this.#statements.set(sql, statement);
    return statement;
  }
}

/**
 * Adds the types of parameters and results. The public type binds `never`, so that the statements
 * of every driver are assignable to it.
 */
function usable(statement: SqliteStatement): AnyStatement {
  return statement as unknown as AnyStatement;
}
