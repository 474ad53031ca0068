import type { DynamoOptions } from "../opening/options.ts";

/** How the versions of a table fit this library. */
export interface TableVersions {
  readonly clientVersion: string;
  readonly schemaVersion: string | undefined;
  readonly lambdaVersion: string | undefined;
  readonly clientMinVersion: string | undefined;
}

/** How a table is upgraded. */
export interface UpgradeOptions extends Pick<
  DynamoOptions,
  "stack" | "region" | "endpointUrl" | "client" | "transport" | "clock"
> {
  /** Only tells what would be done. */
  readonly dryRun?: boolean;
  readonly signal?: AbortSignal;
}

/** What an upgrade did, or would do. */
export interface UpgradeReport {
  readonly from: string | undefined;
  readonly to: string;
}

/** Reads the versions of a table; writes nothing. */
export async function checkTable(_options: UpgradeOptions = {}): Promise<TableVersions> {
  throw new Error("not built yet");
}

/** Brings the items of a table to the schema of this version; continues where it was interrupted. */
export async function upgradeTable(_options: UpgradeOptions = {}): Promise<UpgradeReport> {
  throw new Error("not built yet");
}
