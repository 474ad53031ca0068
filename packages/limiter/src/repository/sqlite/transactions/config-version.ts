import type { PolicySource } from "../../store.ts";
import type { Connection } from "../database/connection.ts";

/**
 * Keeps the policy cache of this process consistent with changes by other processes. Every change
 * of limits increments a number in the row of the namespace, which each transaction reads anyway.
 * When the number is new to this process, its cache is emptied, and the transaction reads the
 * current limits. So a change takes effect in the next decision of every process, and no two
 * processes decide the same bucket with different limits. The cache time only matters in a process
 * that does not decide.
 */
export class ConfigVersion {
  readonly #connection: Connection;
  readonly #namespaceId: string;
  readonly #policies: PolicySource;
  #seen: number | undefined;

  constructor(connection: Connection, namespaceId: string, policies: PolicySource) {
    this.#connection = connection;
    this.#namespaceId = namespaceId;
    this.#policies = policies;
  }

  /** Empties the cache if a transaction has read a version that this process has not seen. */
  noteRead(version: number): void {
    if (version === this.#seen) return;
    this.#seen = version;
    this.#policies.clear();
  }

  /** Reads the version, before limits are read: a change in between is found by the next call. */
  refresh(): void {
    const version = this.#read();
    if (version !== undefined) this.noteRead(version);
  }

  /** Increments the version in the transaction of a change, and returns it. */
  increment(): number | undefined {
    this.#connection.run(
      "UPDATE namespaces SET config_version = config_version + 1 WHERE namespace_id = ?",
      this.#namespaceId,
    );
    return this.#read();
  }

  /**
   * Accepts the version of a committed change by this process. The writer evicts exactly what it
   * has changed, so the rest of the cache is kept, unless other processes have written too.
   */
  noteWritten(version: number | undefined): void {
    if (version !== undefined && version - 1 === this.#seen) this.#seen = version;
  }

  #read(): number | undefined {
    const row = this.#connection.row(
      "SELECT config_version FROM namespaces WHERE namespace_id = ?",
      this.#namespaceId,
    );
    return row === undefined ? undefined : Number(row["config_version"]);
  }
}
