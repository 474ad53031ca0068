import type { PolicySource } from "../../store.ts";
import type { Connection } from "../database/connection.ts";

/**
 * Keeps the policy cache of this process true to what other processes store. Every change of limits
 * moves a number in the namespace's row, which each transaction reads anyway; a number that this
 * process has not seen empties the cache, and what the transaction reads next is what holds. So a
 * change takes effect in the next decision of every process, and no two of them decide the same
 * bucket with different limits. The cache time only bounds what a process remembers that does not
 * decide.
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

  /** A transaction has read this version. */
  noteRead(version: number): void {
    if (version === this.#seen) return;
    this.#seen = version;
    this.#policies.clear();
  }

  /**
   * Reads the version before limits are read: if somebody changes them in between, the next look
   * finds it.
   */
  refresh(): void {
    const version = this.#read();
    if (version !== undefined) this.noteRead(version);
  }

  /** Moves the version, in the transaction of a change. */
  increment(): number | undefined {
    this.#connection.run(
      "UPDATE namespaces SET config_version = config_version + 1 WHERE namespace_id = ?",
      this.#namespaceId,
    );
    return this.#read();
  }

  /**
   * The change was committed. Its writer evicts exactly what it has changed, so the rest of the
   * cache stays, unless others wrote too.
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
