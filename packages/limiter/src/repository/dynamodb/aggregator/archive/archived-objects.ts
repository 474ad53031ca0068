import { createHash } from "node:crypto";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { AuditEvent } from "../../../../core/audit.ts";
import { parseEvent } from "../../audit.ts";
import { parseAuditPartition, parseEventId } from "../../items/key-parsers.ts";
import { archiveFolder, archivePart } from "../../items/keys.ts";
import { getKey } from "../../table/batch.ts";
import type { AttributeMap } from "../../transport/attribute-values.ts";
import type { StreamRecord } from "../stream-record.ts";

/*
 * From records of a stream to objects of an archive. Each object holds the events of one namespace
 * and one day that expired in one batch, a line each, ordered by event id. The same events make the
 * same name and the same bytes, so a batch that is delivered again replaces what it stored.
 */

/** An audit event that expired, and the record that says so. */
export interface ExpiredEvent {
  readonly namespaceId: string;
  readonly event: AuditEvent;
  readonly record: StreamRecord;
}

/** Events that go into one object. */
export interface EventGroup {
  readonly namespaceId: string;
  /** The day of the events, such as 2026-01-31. */
  readonly day: string;
  /** Ordered by event id; each event once. */
  readonly events: readonly AuditEvent[];
  readonly records: readonly StreamRecord[];
}

/** The event of a record, if it expired: an event that a user deleted is not archived. */
export function findExpiredEvent(record: StreamRecord): ExpiredEvent | undefined {
  if (!record.isExpiry || record.before === undefined) return undefined;
  const { PK, SK } = getKey(record.before);
  const partition = parseAuditPartition(PK);
  if (partition === undefined || parseEventId(SK) === undefined) return undefined;
  const event = readEvent(record.before);
  // Without a readable time, the day of the removal has to do: rather there than lost.
  const isDated = !Number.isNaN(event.timestamp.getTime());
  return {
    namespaceId: partition.namespaceId,
    event: isDated ? event : { ...event, timestamp: new Date(record.atMs) },
    record,
  };
}

/** Groups events by namespace and by their own day. */
export function groupEvents(expired: readonly ExpiredEvent[]): readonly EventGroup[] {
  const groups = new Map<string, ExpiredEvent[]>();
  for (const one of expired) {
    const key = `${one.namespaceId}/${toDay(one.event)}`;
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [one]);
    else group.push(one);
  }
  return [...groups.values()].map((group) => ({
    namespaceId: group[0]!.namespaceId,
    day: toDay(group[0]!.event),
    events: inOrder(group.map(({ event }) => event)),
    records: group.map(({ record }) => record),
  }));
}

/** The name of the object that holds a group: made of what it holds, and of nothing else. */
export function objectName(namespace: string, { day, events }: EventGroup): string {
  const [year, month, date] = day.split("-");
  const ids = events.map(({ eventId }) => eventId);
  const hash = createHash("sha256").update(ids.join("\n")).digest("hex").slice(0, HASH_LENGTH);
  return (
    `${archiveFolder(namespace)}year=${year}/month=${month}/day=${date}/` +
    `${archivePart(ids[0]!)}-${hash}.jsonl.gz`
  );
}

/** The compressed lines of a group. Node writes no time into the header. */
export async function objectContent(namespace: string, group: EventGroup): Promise<Uint8Array> {
  const lines = group.events.map((event) => formatLine(event, namespace, group.namespaceId));
  return compress(lines.join(""));
}

const compress = promisify<string, Uint8Array>(gzip);

/** 64 bits: two batches with the same first event hardly ever share them. */
const HASH_LENGTH = 16;

/** One event as a line; the names of the fields are those of the Python zae-limiter's archive. */
function formatLine(event: AuditEvent, namespace: string, namespaceId: string): string {
  const line = {
    event_id: event.eventId,
    namespace,
    namespace_id: namespaceId,
    entity_id: event.entityId,
    action: event.action,
    timestamp: event.timestamp.toISOString(),
    principal: event.principal ?? null,
    resource: event.resource ?? null,
    details: event.details,
  };
  return `${JSON.stringify(line, jsonValue)}\n`;
}

/** What a stored item may hold and JSON cannot. */
function jsonValue(_: string, value: unknown): unknown {
  if (typeof value === "bigint") return String(value);
  return value instanceof Set ? [...(value as ReadonlySet<unknown>)] : value;
}

/**
 * Reads an event. Details of a type that we never write stay in DynamoDB's form: an event that
 * could not be stored would hold up everything behind it in the stream.
 */
function readEvent(item: AttributeMap): AuditEvent {
  try {
    return parseEvent(item);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    const { details, ...rest } = item;
    return { ...parseEvent(rest), details: details as unknown as AuditEvent["details"] };
  }
}

/** Orders events by id and keeps each once, however often a batch delivers it. */
function inOrder(events: readonly AuditEvent[]): readonly AuditEvent[] {
  const byId = new Map(events.map((event) => [event.eventId, event]));
  return [...byId.values()].toSorted((left, right) => (left.eventId < right.eventId ? -1 : 1));
}

function toDay({ timestamp }: AuditEvent): string {
  return timestamp.toISOString().slice(0, 10);
}
