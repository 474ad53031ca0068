import { ApplyConflictError } from "../../core/errors.ts";
import type { MaybePromise } from "../port.ts";
import { parseState, formatState } from "../provisioner-state.ts";
import type { ProvisionerState, VersionRecord } from "../repository.ts";
import type { Guard, ProvisionerStore, VersionStore } from "../store.ts";
import type { Connection } from "./database/connection.ts";
import type { SqliteNamespace } from "./sqlite-namespace.ts";
import type { Transactions } from "./transactions/transactions.ts";

/** What declared limits manage in a namespace. */
export class SqliteProvisioner implements ProvisionerStore {
  readonly #namespace: SqliteNamespace;

  constructor(namespace: SqliteNamespace) {
    this.#namespace = namespace;
  }

  get(): MaybePromise<ProvisionerState | undefined> {
    const { connection, transactions, namespaceId } = this.#namespace;
    return transactions.read(() => {
      const text = connection.row(GET_STATE, namespaceId)?.["state"];
      return typeof text === "string" ? parseState(text) : undefined;
    });
  }

  async put(state: ProvisionerState, expected: number): Promise<boolean> {
    const { connection, transactions, namespaceId } = this.#namespace;
    return transactions.alone(() => {
      if (revisionNow(this.#namespace) !== expected) return false;
      connection.run(PUT_STATE, namespaceId, state.revision, formatState(state));
      return true;
    });
  }
}

/** Throws, inside a transaction, unless a guarded write may be made in it. */
export function checkRevision(namespace: SqliteNamespace, { ifRevision }: Guard): void {
  if (ifRevision !== undefined && ifRevision !== revisionNow(namespace))
    throw new ApplyConflictError(ifRevision);
}

function revisionNow({ connection, namespaceId }: SqliteNamespace): number {
  return Number(connection.row(GET_REVISION, namespaceId)?.["revision"] ?? 0);
}

/** The versions that wrote the stored data. */
export class SqliteVersions implements VersionStore {
  readonly #connection: Connection;
  readonly #transactions: Transactions;

  constructor(connection: Connection, transactions: Transactions) {
    this.#connection = connection;
    this.#transactions = transactions;
  }

  get(): MaybePromise<VersionRecord | undefined> {
    return this.#transactions.read(() => {
      const text = this.#connection.row("SELECT record FROM versions")?.["record"];
      if (typeof text !== "string") return undefined;
      const { updatedAt, ...record } = JSON.parse(text) as Omit<VersionRecord, "updatedAt"> & {
        readonly updatedAt: string;
      };
      return {
        ...record,
        lambdaVersion: record.lambdaVersion,
        updatedBy: record.updatedBy,
        updatedAt: new Date(updatedAt),
      };
    });
  }

  async put(record: VersionRecord): Promise<void> {
    await this.#transactions.alone(() => this.#connection.run(PUT_VERSION, JSON.stringify(record)));
  }
}

const GET_STATE = "SELECT state FROM provisioner WHERE namespace_id = ?";
const GET_REVISION = "SELECT revision FROM provisioner WHERE namespace_id = ?";
const PUT_STATE = `
  INSERT INTO provisioner (namespace_id, revision, state) VALUES (?, ?, ?)
  ON CONFLICT DO UPDATE SET revision = excluded.revision, state = excluded.state`;
const PUT_VERSION =
  "INSERT INTO versions (only_one, record) VALUES (1, ?) ON CONFLICT DO UPDATE SET record = excluded.record";
