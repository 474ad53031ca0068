import { parseAuditPartition, parseBucketPartition } from "../../items/key-parsers.ts";
import { pulseKey } from "../../items/keys.ts";
import { keyOfRecord, type StreamRecord } from "../stream-record.ts";

/**
 * Whether a record is one that an aggregator waits for: a change of a bucket, an audit event that
 * expired, or a pulse. All others, above all what aggregators and runners write themselves, move no
 * checkpoint: the write of one would be the reason for the next.
 */
export function isRelevant(record: StreamRecord): boolean {
  const { PK, SK } = keyOfRecord(record);
  if (parseBucketPartition(PK) !== undefined) return true;
  if (record.isExpiry && parseAuditPartition(PK) !== undefined) return true;
  const pulse = pulseKey();
  return PK === pulse.PK && SK === pulse.SK;
}
