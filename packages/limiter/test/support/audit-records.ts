import { marshalItem } from "../../src/repository/dynamodb/transport/attribute-values.ts";
import type { AttributeMap } from "../../src/repository/dynamodb/transport/attribute-values.ts";
import {
  parseStreamRecord,
  type RawStreamRecord,
  type StreamRecord,
} from "../../src/repository/dynamodb/aggregator/stream-record.ts";

/** What DynamoDB says of who deleted an item whose time to live was over. */
export const TIME_TO_LIVE = { type: "Service", principalId: "dynamodb.amazonaws.com" };

/** What of a removed audit event matters to a test; the rest has defaults. */
export interface Removal {
  readonly eventId: string;
  readonly namespaceId?: string;
  readonly timestamp?: string;
  readonly attributes?: AttributeMap;
  /** Who deleted it, as the stream says. @default the time to live */
  readonly userIdentity?: object | undefined;
}

/** When the events of these records were removed: long after they happened. */
export const REMOVED_MS = Date.UTC(2026, 3, 15, 12);

let sequence = 0;

/** The record of the removal of an audit event, as Lambda passes it in. */
export function rawRemoval(removed: Removal): RawStreamRecord & { readonly eventID: string } {
  const { eventId, namespaceId = "nsid", timestamp = "2026-01-15T12:00:00.000Z" } = removed;
  sequence += 1;
  return {
    eventID: String(sequence),
    eventName: "REMOVE",
    eventSourceARN: "arn:aws:dynamodb:us-east-1:1:table/t/stream/2026-01-01T00:00:00.000",
    ...("userIdentity" in removed
      ? { userIdentity: removed.userIdentity }
      : { userIdentity: TIME_TO_LIVE }),
    dynamodb: {
      ApproximateCreationDateTime: REMOVED_MS / 1000,
      SequenceNumber: String(sequence),
      OldImage: {
        ...marshalItem({
          PK: `${namespaceId}/AUDIT#key-1`,
          SK: `#AUDIT#${eventId}`,
          entity_id: "key-1",
          event_id: eventId,
          timestamp,
          action: "limits_set",
          principal: null,
          resource: "gpt-4",
          details: { limits: ["rpm:5/min"] },
          ttl: 1_776_254_400,
        }),
        ...removed.attributes,
      },
    },
  };
}

/** The same, as an aggregator gets it. */
export function removal(removed: Removal): StreamRecord {
  return parseStreamRecord(rawRemoval(removed))!;
}

/** The item of a namespace by its id. */
export function namespaceItem(namespaceId: string, name: string, status = "active"): AttributeMap {
  return marshalItem({
    PK: "_/SYSTEM#",
    SK: `#NSID#${namespaceId}`,
    namespace_id: namespaceId,
    namespace_name: name,
    status,
    created_at: "2025-01-01T00:00:00.000Z",
  });
}
