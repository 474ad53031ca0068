import { auditPrefix, BUCKET_SORT_KEY, pulseKey } from "../items/keys.ts";

/** One value that a filter accepts: itself, or everything that begins with a text. */
type Accepted = string | { readonly prefix: string };

/** A pattern of Lambda's event filtering. */
export interface StreamFilter {
  readonly dynamodb: {
    readonly [part: string]: { readonly SK: { readonly S: readonly Accepted[] } };
  };
}

/**
 * The records that an aggregator needs, as filters of a Lambda event source mapping: changes of
 * buckets, pulses, and audit events that were deleted. They go by sort keys, because partition keys
 * begin with a namespace, and filters know beginnings only. An audit event has an old image only
 * when it is deleted; whether its time to live was over, the aggregator sees itself.
 */
export const STREAM_FILTERS: readonly StreamFilter[] = [
  { dynamodb: { Keys: { SK: { S: [BUCKET_SORT_KEY, pulseKey().SK] } } } },
  { dynamodb: { OldImage: { SK: { S: [{ prefix: auditPrefix }] } } } },
];
