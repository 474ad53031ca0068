import { Expiring } from "../../cache/expiring.ts";
import { namespaceIdKey } from "../../items/keys.ts";
import { parseNamespace } from "../../items/namespace-items.ts";
import type { Connection } from "../../table/connection.ts";
import { ItemReader } from "../../table/item-reader.ts";
import { eachWithin } from "../../table/each-within.ts";
import {
  toFailures,
  NO_FAILURES,
  UNLIMITED,
  type PartReport,
  type RecordFailure,
  type TimeCheck,
} from "../part.ts";
import type { StreamRecord } from "../stream-record.ts";
import type { AuditArchive } from "./archive.ts";
import {
  findExpiredEvent,
  groupEvents,
  objectContent,
  objectName,
  type EventGroup,
} from "./archived-objects.ts";

/** What became of the audit events that expired. */
export interface ArchiveReport extends PartReport {
  /** Events that are in the archive now. */
  readonly archived: number;
  /** Events that expired while there was no archive. */
  readonly dropped: number;
}

/**
 * The most objects that are stored at once. A batch has one for each namespace and day, usually
 * one or two.
 */
const MAX_STORES = 8;

/** A namespace is never renamed, so its name is read again only to bound what is remembered. */
const NAME_TTL_MS = 3_600_000;

/** Moves audit events that expire into an archive. */
export class AuditArchiver {
  readonly #archive: AuditArchive | undefined;
  /** The names of namespaces, by id. */
  readonly #names: Expiring<string>;

  constructor(options: {
    readonly connection: Connection;
    readonly archive: AuditArchive | undefined;
  }) {
    this.#archive = options.archive;
    this.#names = namespaceNames(options.connection);
  }

  /** Stores the events of a batch that expired. Those of an object that failed are failures. */
  async archive(
    records: readonly StreamRecord[],
    checkTime: TimeCheck = UNLIMITED,
  ): Promise<ArchiveReport> {
    const expired = records.flatMap((record) => findExpiredEvent(record) ?? []);
    const archive = this.#archive;
    if (archive === undefined)
      return { failures: NO_FAILURES, archived: 0, dropped: expired.length };
    const failures: RecordFailure[] = [];
    await eachWithin(MAX_STORES, groupEvents(expired), async (group) => {
      try {
        checkTime();
        await this.#store(archive, group);
      } catch (error) {
        failures.push(...toFailures(group.records, error));
      }
    });
    return { failures, archived: expired.length - failures.length, dropped: 0 };
  }

  async #store(archive: AuditArchive, group: EventGroup): Promise<void> {
    const namespace = await this.#names.get(group.namespaceId);
    await archive.store(objectName(namespace, group), await objectContent(namespace, group));
  }
}

/**
 * The name of a namespace, also of a deleted one. Where nothing is left of a namespace, its id has
 * to do.
 */
function namespaceNames(connection: Connection): Expiring<string> {
  const reader = new ItemReader(connection);
  return new Expiring({
    read: async (namespaceId) => {
      const item = await reader.get(namespaceIdKey(namespaceId));
      return (item && parseNamespace(item).name) || namespaceId;
    },
    clock: connection.clock,
    ttlMs: NAME_TTL_MS,
  });
}
