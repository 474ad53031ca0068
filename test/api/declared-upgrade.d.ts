// Made by `npm run declare`.

declare module "declared/@zae-limiter/upgrade" {
  import { TablePlace } from "declared/zae-limiter/dynamodb";
  import { UsageWindow } from "declared/zae-limiter";
  export function upgradeTable(options?: UpgradeOptions): Promise<UpgradeReport>;
  export interface UpgradeOptions extends TablePlace {
    readonly into?: string;
    readonly dryRun?: boolean;
    readonly force?: boolean;
    readonly snapshotWindows?: readonly UsageWindow[];
    readonly lambdaVersion?: string;
    readonly onProgress?: (progress: UpgradeProgress) => void;
    readonly signal?: AbortSignal;
  }
  export interface UpgradeProgress {
    readonly step: string;
    readonly items: number;
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
  export interface UpgradeCount {
    readonly changed: number;
    readonly unchanged: number;
  }
}
