import { parseAuditPartition, parseBucketPartition } from "../../items/key-parsers.ts";
import { keyOfRecord, type StreamRecord } from "../stream-record.ts";

/**
 * Whether a record is one that an aggregator waits for: a change of a bucket, or an audit event
 * that expired. All others, above all what aggregators and runners write themselves, cause no
 * checkpoint: the write of one would be the reason for the next.
 */
export function isRelevant(record: StreamRecord): boolean {
  const { PK } = keyOfRecord(record);
  return (
    parseBucketPartition(PK) !== undefined ||
    (record.isExpiry && parseAuditPartition(PK) !== undefined)
  );
}
