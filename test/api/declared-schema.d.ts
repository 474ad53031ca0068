// Made by `npm run declare`.

declare module "declared/zae-limiter/dynamodb/schema" {
  export {
    parseStreamRecord,
    RawStreamRecord,
    StreamRecord,
  } from "declared/zae-limiter/aggregator";
  import { ConfigKey, BucketLimit } from "declared/zae-limiter/backend";
  import { UsageWindow, Amounts } from "declared/zae-limiter";
  export function auditKey(namespaceId: string, entityId: string, eventId: string): ItemKey;
  export function auditPartition(namespaceId: string, entityId: string): string;
  export const auditPrefix = "#AUDIT#";
  export function bucketKey(
    namespaceId: string,
    { entityId, resource, shard }: BucketName,
  ): ItemKey;
  export const BUCKET_SORT_KEY = "#STATE";
  export function childrenPartition(namespaceId: string, parentId: string): string;
  export function configKey(namespaceId: string, key: ConfigKey): ItemKey;
  export const configPrefix = "#CONFIG#";
  export function entitiesPrefix(namespaceId: string): string;
  export function entityBucketsPrefix(resource?: string): string;
  export function entityConfigPartition(namespaceId: string, resource: string): string;
  export const entityConfigsPrefix = "CONFIG#";
  export function entityKey(namespaceId: string, entityId: string): ItemKey;
  export function entityPartition(namespaceId: string, entityId: string): string;
  export function heartbeatKey(): ItemKey;
  export function namespaceIdKey(namespaceId: string): ItemKey;
  export const namespaceIdPrefix = "#NSID#";
  export function namespaceNameKey(name: string): ItemKey;
  export const namespaceNamePrefix = "#NAMESPACE#";
  export function provisionerKey(namespaceId: string): ItemKey;
  export function provisionerStateKey(namespaceId: string): ItemKey;
  export function pulseKey(): ItemKey;
  export const resourceBucketsPrefix = "BUCKET#";
  export function resourcePartition(namespaceId: string, resource: string): string;
  export function resourcesPrefix(namespaceId: string): string;
  export function resourceUsagePrefix(window: UsageWindow): string;
  export function streamLeaseKey(): ItemKey;
  export function systemPartition(namespaceId: string): string;
  export const TABLE_NAMESPACE = "_";
  export function upgradeKey(): ItemKey;
  export function usageKey(
    namespaceId: string,
    { entityId, resource, window, startMs }: UsageName,
  ): ItemKey;
  export function usagePrefix(window: UsageWindow): string;
  export function versionKey(): ItemKey;
  export interface BucketName {
    readonly entityId: string;
    readonly resource: string;
    readonly shard: number;
  }
  export interface UsageName {
    readonly entityId: string;
    readonly resource: string;
    readonly window: UsageWindow;
    readonly startMs: number;
  }
  export interface ItemKey {
    readonly PK: string;
    readonly SK: string;
  }
  export function consume(bucket: BucketRecord, consumption: Consumption): Consumed;
  export function refill(bucket: BucketRecord, nowMs: number): BucketRecord;
  export function retryAfter(bucket: BucketRecord, consumption: Consumption): number;
  export type Consumed =
    | {
        readonly granted: true;
        readonly bucket: BucketRecord;
      }
    | {
        readonly granted: false;
        readonly retryAfterMs: number;
      };
  export interface Consumption {
    readonly amounts: Amounts;
    readonly nowMs: number;
  }
  export function parseBucketItem(
    item: Readonly<Record<string, object>> | undefined,
  ): BucketRecord | undefined;
  export interface BucketRecord extends BucketName {
    readonly namespaceId: string;
    readonly shardCount: number;
    readonly parentId: string | undefined;
    readonly lastRefillMs: number;
    readonly limits: readonly LimitBalance[];
    readonly expiresAtSeconds: number | undefined;
  }
  export interface LimitBalance extends BucketLimit {
    readonly tokensMilli: number;
    readonly remainder: number;
    readonly windowEndMs: number;
    readonly totalConsumedMilli: number;
  }
  export function parseKey(item: KeyedItem | undefined): RecordKey | undefined;
  export interface AuditName {
    readonly entityId: string;
    readonly eventId: string;
  }
  export interface KeyedItem {
    readonly PK?: unknown;
    readonly SK?: unknown;
  }
  export interface NamespaceEntry {
    readonly registered: string;
  }
  export type RecordKey = {
    readonly namespaceId: string;
  } & (
    | Kind<"entity", Pick<BucketName, "entityId">>
    | Kind<"bucket", BucketName>
    | Kind<"limits", ConfigKey>
    | Kind<"usage", UsageName>
    | Kind<"audit", AuditName>
    | Kind<"namespace name" | "namespace id", NamespaceEntry>
    | Kind<SingleKind, unknown>
  );
  export type SingleKind =
    | "provisioner"
    | "provisioner state"
    | "version"
    | "upgrade"
    | "pulse"
    | "heartbeat"
    | "stream lease";
  type Kind<Name, Key> = {
    readonly kind: Name;
  } & Key;
}
