/*
 * What `@zae-limiter/upgrade` of the same version needs to rewrite the items of a table. It is not
 * for others: it has no documentation, and any version may change it.
 */
export { MILLI } from "../../../core/amounts.ts";
export { bucketLimit } from "../../../core/bucket/bucket.ts";
export { USAGE_WINDOWS, windowStartMs } from "../../../core/usage.ts";
export { judgeVersion, readVersion, withConnection } from "../check-table.ts";
export { bucketAttributes, limitAttribute } from "../items/bucket-item.ts";
export { bucketKey, keyAttributes } from "../items/bucket-key.ts";
export { isOlderVersion, UPGRADING_VERSION } from "../items/compatibility.ts";
export { configItem, parseConfig, parseSettings } from "../items/config-item.ts";
export {
  isEntityKey,
  parseAuditPartition,
  parseBucketPartition,
  parseConfigKey,
  parseEntityPartition,
  parseNamespaceId,
  parseUsageKey,
} from "../items/key-parsers.ts";
export {
  BUCKET_SORT_KEY,
  namespaceIndexKeys,
  namespaceNameKey,
  PROVISIONER_STATE_SORT_KEY,
  systemPartition,
  TABLE_NAMESPACE,
  upgradeKey,
  usageIndexKeys,
  usageKey,
  windowText,
} from "../items/keys.ts";
export type { BucketName, UsageName } from "../items/keys.ts";
export { parseNamespace } from "../items/namespace-items.ts";
export { assertCompatible, LOST_VERSION } from "../items/schema-version.ts";
export { CONSUMED_PREFIX } from "../items/usage-item.ts";
export { versionItem } from "../records.ts";
export { absent, Aliases } from "../table/aliases.ts";
export { batchGet, toChunks, getKey, marshalKey } from "../table/batch.ts";
export type { ItemKey } from "../table/batch.ts";
export type { Connection, TransactItem } from "../table/connection.ts";
export { eachWithin } from "../table/each-within.ts";
export { contention } from "../table/table-errors.ts";
export {
  getBoolean,
  marshalItem,
  getNumber,
  getString,
  unmarshal,
} from "../transport/attribute-values.ts";
export type { AttributeMap } from "../transport/attribute-values.ts";
