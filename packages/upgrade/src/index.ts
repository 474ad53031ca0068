export { upgradeTable } from "./upgrade-table.ts";
export type { UpgradeOptions, UpgradeProgress, UpgradeReport } from "./upgrade-table.ts";
export type { UpgradeCount } from "./upgrade-tally.ts";
