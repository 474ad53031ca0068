import { auditPrefix, BUCKET_SORT_KEY, pulseKey } from "../items/keys.ts";

/**
 * The records that an aggregator needs, as patterns of a Lambda event source mapping's filter, one
 * of which must match: changes of buckets, pulses, and audit events that were deleted. They go by
 * sort keys, because partition keys begin with a namespace, and filters know beginnings only. An
 * audit event has an old image only when it is deleted; whether that was because its time to live
 * was over, the aggregator sees itself.
 */
export const STREAM_FILTERS: readonly string[] = [
  { Keys: { SK: { S: [BUCKET_SORT_KEY, pulseKey().SK] } } },
  { OldImage: { SK: { S: [{ prefix: auditPrefix }] } } },
].map((dynamodb) => JSON.stringify({ dynamodb }));
