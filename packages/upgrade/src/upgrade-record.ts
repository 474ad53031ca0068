/*
 * The record of an upgrade, `_/SYSTEM#` / `#UPGRADE`: who runs it, until when, and how far it is.
 *
 *   owner         a random id of the run; `lease_until` is renewed with every page
 *   to            the version that is upgraded to
 *   pass, cursor  where to continue
 *   source        the table that items are copied from, if they are
 *   done          the items were copied: they must not be copied over newer ones again
 *
 * Two runs at once would do no harm, because every change requires items as they were read. The
 * lease saves the cost, and keeps a run from finishing while another one is at work.
 */
import { InfrastructureError } from "zae-limiter";
import {
  Aliases,
  getBoolean,
  marshalItem,
  marshalKey,
  namespaceIndexKeys,
  getNumber,
  getString,
  TABLE_NAMESPACE,
  unmarshal,
  upgradeKey,
  type AttributeMap,
  type Connection,
  type TransactItem,
} from "zae-limiter/dynamodb-internals";

/** How long a run that died keeps others out. A page takes far less. */
const LEASE_MS = 60_000;

/** How far an upgrade is. */
export interface UpgradePosition {
  readonly to: string;
  readonly pass: number;
  /** The key that the last page ended with; undefined at the beginning of a pass. */
  readonly cursor: AttributeMap | undefined;
}

/** The record, for the run that holds its lease. */
export class UpgradeRecord {
  readonly #connection: Connection;
  readonly #owner: string;
  readonly #source: string | undefined;

  private constructor(connection: Connection, owner: string, source: string | undefined) {
    this.#connection = connection;
    this.#owner = owner;
    this.#source = source;
  }

  /** Takes the lease, and returns how far an earlier run came. */
  static async take(
    connection: Connection,
    { owner, source }: { readonly owner: string; readonly source: string | undefined },
  ): Promise<{ readonly record: UpgradeRecord; readonly position: UpgradePosition | undefined }> {
    const item = await readRecord(connection);
    const nowMs = connection.clock.now();
    if ((getNumber(item?.["lease_until"]) ?? 0) > nowMs)
      throw buildRunningError(connection.tableName);
    if (getString(item?.["source"]) !== source && item !== undefined)
      throw new InfrastructureError(
        "ERR_LIMITER_UPGRADE_RUNNING",
        `Another upgrade of table ${connection.tableName} was begun and is not finished, ` +
          `${sourceText(getString(item["source"]))}. Finish that one first.`,
      );
    const record = new UpgradeRecord(connection, owner, source);
    const position = item === undefined ? undefined : parsePosition(item);
    await record.#put(position ?? { to: "", pass: 0, cursor: undefined }, item);
    return { record, position };
  }

  /** Stores how far the run is, and keeps the lease. */
  async moveTo(position: UpgradePosition): Promise<void> {
    await this.#put(position, undefined);
  }

  /** Lets another run continue at once; a run that is killed keeps the lease for a minute. */
  async release(): Promise<void> {
    const alias = new Aliases();
    const update = `SET ${alias.name("lease_until")} = ${alias.value(0)}`;
    await this.#connection.conditional("UpdateItem", {
      Key: marshalKey(upgradeKey()),
      UpdateExpression: update,
      ConditionExpression: this.#isOwn(alias),
      ...alias.fields(),
    });
  }

  /** Fails a transaction when another run has taken over. */
  check(): TransactItem {
    return { ConditionCheck: this.#ownRecord() };
  }

  /** The write that ends the upgrade, for the transaction that also stores the new version. */
  end(): TransactItem {
    return { Delete: this.#ownRecord() };
  }

  /** The write that ends a copy: the record stays, so that no other run copies again. */
  endCopy(): TransactItem {
    const alias = new Aliases();
    const condition = this.#isOwn(alias);
    const Item = this.#item({ to: "", pass: 0, cursor: undefined }, { isDone: true });
    return { Put: { Item, ConditionExpression: condition, ...alias.fields() } };
  }

  /** A record that was just read is replaced, if it is still the same; otherwise our own. */
  async #put(position: UpgradePosition, read: AttributeMap | undefined): Promise<void> {
    const alias = new Aliases();
    const seen = read?.["owner"];
    const condition =
      seen === undefined
        ? `attribute_not_exists(${alias.name("PK")}) OR ${this.#isOwn(alias)}`
        : `${alias.name("owner")} = ${alias.value(unmarshal(seen))} OR ${this.#isOwn(alias)}`;
    const { applied } = await this.#connection.repeatConditional("PutItem", {
      Item: this.#item(position, { isDone: false }),
      ConditionExpression: condition,
      ...alias.fields(),
    });
    if (!applied) throw buildRunningError(this.#connection.tableName);
  }

  #ownRecord(): object {
    const alias = new Aliases();
    const condition = this.#isOwn(alias);
    const Key = marshalKey(upgradeKey());
    return { Key, ConditionExpression: condition, ...alias.fields() };
  }

  #isOwn(alias: Aliases): string {
    return `${alias.name("owner")} = ${alias.value(this.#owner)}`;
  }

  #item(
    { to, pass, cursor }: UpgradePosition,
    { isDone }: { readonly isDone: boolean },
  ): AttributeMap {
    const key = upgradeKey();
    const item = marshalItem({
      ...key,
      ...namespaceIndexKeys(TABLE_NAMESPACE, key),
      owner: this.#owner,
      ...(isDone
        ? { done: true }
        : { lease_until: Math.floor(this.#connection.clock.now()) + LEASE_MS }),
      to,
      pass,
      source: this.#source,
    });
    return cursor === undefined ? item : { ...item, cursor: { M: cursor } };
  }
}

/** The item of the record, if there is one. */
export async function readRecord(connection: Connection): Promise<AttributeMap | undefined> {
  const { Item } = await connection.repeat<{ Item?: AttributeMap }>("GetItem", {
    Key: marshalKey(upgradeKey()),
    ConsistentRead: true,
  });
  return Item;
}

/** Whether a record says that everything was copied. */
export function isCopied(record: AttributeMap | undefined): boolean {
  return getBoolean(record?.["done"]) === true;
}

function parsePosition(item: AttributeMap): UpgradePosition {
  const { cursor } = item;
  return {
    to: getString(item["to"]) ?? "",
    pass: getNumber(item["pass"]) ?? 0,
    cursor: cursor !== undefined && "M" in cursor ? cursor.M : undefined,
  };
}

function buildRunningError(tableName: string): InfrastructureError {
  return new InfrastructureError(
    "ERR_LIMITER_UPGRADE_RUNNING",
    `Another process is upgrading table ${tableName}. Wait until it has finished; ` +
      "one that was killed can be continued after a minute.",
  );
}

function sourceText(source: string | undefined): string {
  return source === undefined ? "in place" : `from table ${source}`;
}
