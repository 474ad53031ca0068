// Made by `npm run declare`.

declare module "declared/zae-limiter/aggregator" {
  import { DynamoOptions } from "declared/zae-limiter/dynamodb";
  import { UsageWindow } from "declared/zae-limiter";
  export function openAggregator(options?: AggregatorOptions): Promise<Aggregator>;
  export interface Aggregator {
    process(records: readonly StreamRecord[], options?: ProcessOptions): Promise<BatchReport>;
    pulse(): Promise<void>;
    close(): void;
  }
  export interface AggregatorOptions extends Pick<
    DynamoOptions,
    | "stack"
    | "region"
    | "endpointUrl"
    | "client"
    | "transport"
    | "clock"
    | "random"
    | "requestTimeoutMs"
    | "maxAttempts"
    | "bucketTtlMultiplier"
  > {
    readonly windows?: readonly UsageWindow[];
    readonly archive?: AuditArchive;
    readonly usageRetentionDays?: number;
  }
  export interface BatchReport extends AggregatorCounts {
    readonly shards: number;
    readonly lagMs: number;
    readonly failures: readonly RecordFailure[];
  }
  export interface ProcessOptions {
    readonly withinMs?: number;
  }
  export interface AuditArchive {
    store(name: string, content: Uint8Array): Promise<void>;
  }
  export function folderArchive(path: string): AuditArchive;
  export function s3Archive(url: string, options?: S3ArchiveOptions): Promise<AuditArchive>;
  export interface S3ArchiveClient {
    send(
      command: never,
      options?: {
        abortSignal?: AbortSignal;
      },
    ): Promise<unknown>;
  }
  export interface S3ArchiveOptions {
    readonly region?: string;
    readonly endpointUrl?: string;
    readonly client?: S3ArchiveClient;
  }
  export interface RecordFailure {
    readonly sequenceNumber: string;
    readonly error: unknown;
  }
  export const STREAM_FILTERS: readonly string[];
  export function parseStreamRecord(
    raw: RawStreamRecord,
    streamArn?: string,
  ): StreamRecord | undefined;
  export interface RawStreamRecord {
    readonly eventName?: string | undefined;
    readonly eventSourceARN?: string | undefined;
    readonly userIdentity?: object | undefined;
    readonly dynamodb?:
      | {
          readonly ApproximateCreationDateTime?: number | Date | undefined;
          readonly SequenceNumber?: string | undefined;
          readonly OldImage?: object | undefined;
          readonly NewImage?: object | undefined;
        }
      | undefined;
  }
  export interface StreamRecord {
    readonly kind: "insert" | "modify" | "remove";
    readonly atMs: number;
    readonly sequenceNumber: string;
    readonly position: string;
    readonly before: AttributeMap | undefined;
    readonly after: AttributeMap | undefined;
    readonly isExpiry: boolean;
  }
  export function runAggregator(options?: RunnerOptions): Promise<RunnerReport>;
  export interface RunnerOptions extends AggregatorOptions {
    readonly once?: boolean;
    readonly signal?: AbortSignal;
    readonly onProgress?: (progress: RunnerProgress) => void;
    readonly onProblem?: (problem: RunnerProblem) => void;
  }
  export type RunnerProblem =
    | {
        readonly kind: "retry";
        readonly shardId: string | undefined;
        readonly error: unknown;
        readonly attempts: number;
        readonly retryInMs: number;
      }
    | {
        readonly kind: "records-lost";
        readonly shardId: string;
      };
  export interface RunnerCounts extends AggregatorCounts {
    readonly checkpoints: number;
  }
  export interface RunnerProgress extends RunnerCounts {
    readonly lagMs: number;
    readonly shardsHeld: number;
    readonly shardsSeen: number;
  }
  export interface RunnerReport extends RunnerCounts {
    readonly ended: "counted" | "stopped";
  }
  export function tableOptions(
    url: string,
  ): Pick<DynamoOptions, "stack" | "region" | "endpointUrl">;
  interface AggregatorCounts {
    readonly records: number;
    readonly counted: number;
    readonly skipped: number;
    readonly snapshotWrites: number;
    readonly archived: number;
    readonly dropped: number;
    readonly splits: number;
    readonly merges: number;
  }
  type AttributeMap = {
    readonly [attribute: string]: AttributeValue;
  };
  type AttributeValue =
    | {
        readonly S: string;
      }
    | {
        readonly N: string;
      }
    | {
        readonly BOOL: boolean;
      }
    | {
        readonly NULL: true;
      }
    | {
        readonly L: readonly AttributeValue[];
      }
    | {
        readonly M: AttributeMap;
      }
    | {
        readonly SS: readonly string[];
      };
}
