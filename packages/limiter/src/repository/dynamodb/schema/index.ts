/*
 * The records of the table, for programs that read it or its stream themselves. Nothing here needs
 * a client.
 */
// What the declarations of these name, where a project has no such types.
import "../../platform-types.ts";

export { parseStreamRecord } from "../aggregator/stream-record.ts";
export type { RawStreamRecord, StreamRecord } from "../aggregator/stream-record.ts";
export {
  auditKey,
  auditPartition,
  auditPrefix,
  bucketKey,
  BUCKET_SORT_KEY,
  childrenPartition,
  configKey,
  configPrefix,
  entitiesPrefix,
  entityBucketsPrefix,
  entityConfigPartition,
  entityConfigsPrefix,
  entityKey,
  entityPartition,
  heartbeatKey,
  namespaceIdKey,
  namespaceIdPrefix,
  namespaceNameKey,
  namespaceNamePrefix,
  provisionerKey,
  provisionerStateKey,
  pulseKey,
  resourceBucketsPrefix,
  resourcePartition,
  resourcesPrefix,
  resourceUsagePrefix,
  streamLeaseKey,
  systemPartition,
  TABLE_NAMESPACE,
  upgradeKey,
  usageKey,
  usagePrefix,
  versionKey,
} from "../items/keys.ts";
export type { BucketName, UsageName } from "../items/keys.ts";
export type { ItemKey } from "../table/batch.ts";
export { consume, refill, retryAfter } from "./bucket-arithmetic.ts";
export type { Consumed, Consumption } from "./bucket-arithmetic.ts";
export { parseBucketItem } from "./bucket-record.ts";
export type { BucketRecord, LimitBalance } from "./bucket-record.ts";
export { parseKey } from "./parse-key.ts";
export type { AuditName, KeyedItem, NamespaceEntry, RecordKey, SingleKind } from "./parse-key.ts";
