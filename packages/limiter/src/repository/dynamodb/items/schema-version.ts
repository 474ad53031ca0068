import { IncompatibleSchemaError, VersionMismatchError } from "../../../core/errors.ts";
import { VERSION } from "../../../core/version.ts";
import type { VersionRecord } from "../../repository.ts";

/** The version of the items that this library writes. */
export const SCHEMA_VERSION = "1.0.0";

/**
 * Throws when a table has a schema that this library must not touch: a newer one, or one that
 * requires a newer client.
 */
export function assertCompatible(record: VersionRecord | undefined): void {
  if (record === undefined) return;
  const { schemaVersion, lambdaVersion, clientMinVersion } = record;
  const versions = { clientVersion: VERSION, schemaVersion, lambdaVersion };
  if (numbersOf(schemaVersion)[0]! > numbersOf(SCHEMA_VERSION)[0]!)
    throw new IncompatibleSchemaError(
      `The table has schema ${schemaVersion}, but this version of zae-limiter supports only ` +
        `${SCHEMA_VERSION}. Upgrade zae-limiter.`,
      versions,
    );
  if (isOlder(VERSION, clientMinVersion))
    throw new VersionMismatchError(
      `The table requires version ${clientMinVersion} or newer of zae-limiter; ` +
        `this is ${VERSION}. Upgrade zae-limiter.`,
      {
        ...versions,
        canAutoUpdate: false,
      },
    );
}

/** Whether one version comes before another; pre-releases count as their release. */
export function isOlder(version: string, than: string): boolean {
  const [left, right] = [numbersOf(version), numbersOf(than)];
  const index = left.findIndex((number, position) => number !== right[position]);
  return index >= 0 && left[index]! < right[index]!;
}

/** Major, minor and patch; pre-releases count as their release. */
function numbersOf(version: string): readonly number[] {
  return [0, 1, 2].map((index) => Number.parseInt(version.split(/[.+-]/)[index] ?? "0", 10) || 0);
}
