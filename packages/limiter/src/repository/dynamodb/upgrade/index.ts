export { checkTable, upgradeTable } from "./upgrade-table.ts";
export type { TableVersions, UpgradeOptions, UpgradeReport } from "./upgrade-table.ts";
