import { getKey, type ItemKey } from "../table/batch.ts";
import type { AttributeMap } from "../transport/attribute-values.ts";

/** One change of an item, as the table's stream reports it. */
export interface StreamRecord {
  /** Whether the item was created, changed or deleted. */
  readonly kind: "insert" | "modify" | "remove";
  /** When it was changed: `ApproximateCreationDateTime`, to the second. */
  readonly atMs: number;
  /** The number that the stream gave it; failures name it. */
  readonly sequenceNumber: string;
  /**
   * Sorts the changes of one item, also over several streams of a table: the stream's label, `#`,
   * and the sequence number padded to 40 digits.
   */
  readonly position: string;
  /** The item before the change; undefined when it was created. */
  readonly before: AttributeMap | undefined;
  /** The item after the change; undefined when it was deleted. */
  readonly after: AttributeMap | undefined;
  /** Whether DynamoDB deleted it because its time to live was over. */
  readonly isExpiry: boolean;
}

/** A record as `GetRecords` returns it, or as Lambda passes it in; only what is used. */
export interface RawStreamRecord {
  /** INSERT, MODIFY or REMOVE. */
  readonly eventName?: string | undefined;
  /** The stream; Lambda only. */
  readonly eventSourceARN?: string | undefined;
  /** Who made the change, if it was DynamoDB itself. */
  readonly userIdentity?: object | undefined;
  /** The change. */
  readonly dynamodb?:
    | {
        /** When the item was changed; a number counts seconds since 1970. */
        readonly ApproximateCreationDateTime?: number | Date | undefined;
        /** The number that the stream gave the record. */
        readonly SequenceNumber?: string | undefined;
        /** The item before the change. */
        readonly OldImage?: object | undefined;
        /** The item after the change. */
        readonly NewImage?: object | undefined;
      }
    | undefined;
}

const KINDS: ReadonlyMap<unknown, StreamRecord["kind"]> = new Map([
  ["INSERT", "insert"],
  ["MODIFY", "modify"],
  ["REMOVE", "remove"],
]);

/** Sequence numbers have up to 40 digits. */
const SEQUENCE_LENGTH = 40;

/**
 * Reads a record; `streamArn` is that of the stream, which Lambda's records carry themselves.
 * Undefined when it is not a record of a change, or lacks its time, its number or the item.
 *
 * @example const records = event.Records.flatMap((raw) => parseStreamRecord(raw) ?? []);
 */
export function parseStreamRecord(
  raw: RawStreamRecord,
  streamArn?: string,
): StreamRecord | undefined {
  // What comes from outside may lack anything, and one record must not spoil its batch.
  const { eventName, eventSourceARN, userIdentity, dynamodb }: RawStreamRecord = raw ?? {};
  const { ApproximateCreationDateTime: time, SequenceNumber: sequenceNumber } = dynamodb ?? {};
  const kind = KINDS.get(eventName);
  const before = (dynamodb?.OldImage ?? undefined) as AttributeMap | undefined;
  const after = (dynamodb?.NewImage ?? undefined) as AttributeMap | undefined;
  const atMs = time instanceof Date ? time.getTime() : Math.floor((time ?? NaN) * 1000);
  if (
    kind === undefined ||
    typeof sequenceNumber !== "string" ||
    !Number.isFinite(atMs) ||
    (kind === "remove" ? before : after) === undefined
  )
    return undefined;
  return {
    kind,
    atMs,
    sequenceNumber,
    position: buildPosition(streamArn ?? eventSourceARN ?? "", sequenceNumber),
    before,
    after,
    isExpiry: kind === "remove" && isTimeToLive(userIdentity),
  };
}

/** The key of the item that was changed. */
export function keyOfRecord({ before, after }: StreamRecord): ItemKey {
  return getKey(after ?? before ?? {});
}

/** The position of a record in a stream, whose ARN ends in the time at which it was enabled. */
export function buildPosition(streamArn: string, sequenceNumber: string): string {
  const label = streamArn.slice(streamArn.lastIndexOf("/") + 1);
  return `${label}#${sequenceNumber.padStart(SEQUENCE_LENGTH, "0")}`;
}

/** Lambda writes the fields in lower case, `GetRecords` does not. */
function isTimeToLive(identity: object | undefined): boolean {
  const fields = Object.entries(identity ?? {}).map(([name, value]) => [name.toLowerCase(), value]);
  const { type, principalid } = Object.fromEntries(fields) as Record<string, unknown>;
  return type === "Service" && principalid === "dynamodb.amazonaws.com";
}
