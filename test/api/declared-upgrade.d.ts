/* `@zae-limiter/upgrade`, and the versions of a table, and how it is upgraded (ADR 017). */

declare module "declared/zae-limiter/dynamodb" {
  export interface TableVersions {
    readonly clientVersion: string;
    readonly schemaVersion: string | undefined;
    readonly lambdaVersion: string | undefined;
    readonly clientMinVersion: string | undefined;
  }
  export type CompatibilityState =
    | "compatible"
    | "not initialised"
    | "upgrade needed"
    | "schema too new"
    | "client too old"
    | "unreadable";
  export type LambdaState = "none" | "same" | "older" | "newer" | "unreadable";
  export interface Compatibility {
    readonly state: CompatibilityState;
    readonly lambda: LambdaState;
    readonly message: string;
  }
  export interface TableCheck extends TableVersions, Compatibility {}
  export type TablePlace = Pick<
    DynamoOptions,
    "stack" | "region" | "endpointUrl" | "client" | "transport" | "clock"
  >;
  /** Reads only. */
  export function checkTable(place?: TablePlace): Promise<TableCheck>;
}

declare module "declared/@zae-limiter/upgrade" {
  import type { UsageWindow } from "declared/zae-limiter";
  import type { TablePlace } from "declared/zae-limiter/dynamodb";
  export interface UpgradeProgress {
    readonly step: string;
    readonly items: number;
  }
  export interface UpgradeOptions extends TablePlace {
    readonly into?: string;
    readonly dryRun?: boolean;
    readonly force?: boolean;
    readonly snapshotWindows?: readonly UsageWindow[];
    readonly lambdaVersion?: string;
    readonly onProgress?: (progress: UpgradeProgress) => void;
    readonly signal?: AbortSignal;
  }
  export interface UpgradeCount {
    readonly changed: number;
    readonly unchanged: number;
  }
  export interface UpgradeReport {
    readonly from: string | undefined;
    readonly to: string;
    readonly migrations: readonly string[];
    readonly counts: Readonly<Record<string, UpgradeCount>>;
    readonly dropped: readonly string[];
    readonly left: readonly string[];
    readonly dryRun: boolean;
  }
  /** Continues where it was interrupted. */
  export function upgradeTable(options?: UpgradeOptions): Promise<UpgradeReport>;
}
