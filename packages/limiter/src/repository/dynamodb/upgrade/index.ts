export { checkTable, upgradeTable } from "./upgrade-table.ts";
export type {
  TableCheck,
  UpgradeOptions,
  UpgradePlace,
  UpgradeProgress,
  UpgradeReport,
} from "./upgrade-table.ts";
export type { UpgradeCount } from "./upgrade-tally.ts";
export type {
  Compatibility,
  CompatibilityState,
  LambdaState,
  TableVersions,
} from "../items/compatibility.ts";
