import type { SqliteDatabase, SqliteStatement } from "./driver.ts";

/** What can be bound. Every driver takes these; none takes undefined or booleans alike. */
export type SqlValue = string | number | null;

/** A row by column name. libsql adds `_metadata`, which nobody reads. */
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
 * A database with its statements prepared once. Parameters are plain `?`: drivers disagree whether
 * `?1` is bound by position or by name. SQL texts are constants of this folder, so there are only
 * as many as the code has.
 */
export class Connection {
  readonly #database: SqliteDatabase;
  readonly #statements = new Map<string, AnyStatement>();

  constructor(database: SqliteDatabase) {
    this.#database = database;
  }

  /** Runs statements that bind and answer nothing. */
  exec(sql: string): void {
    this.#database.exec(sql);
  }

  row(sql: string, ...values: readonly SqlValue[]): Row | undefined {
    return this.#statement(sql).get(...values) ?? undefined;
  }

  rows(sql: string, ...values: readonly SqlValue[]): readonly Row[] {
    return this.#statement(sql).all(...values);
  }

  /** Runs a change and tells how many rows it touched. */
  run(sql: string, ...values: readonly SqlValue[]): number {
    return Number(this.#statement(sql).run(...values).changes);
  }

  /** Inserts one row and tells its id. */
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
 * The public type binds `never`, so that every driver's own statement fits it; here is the one
 * place that says what is bound.
 */
function usable(statement: SqliteStatement): AnyStatement {
  return statement as unknown as AnyStatement;
}
