import { IncompatibleSchemaError } from "../../../core/errors.ts";
import { VERSION } from "../../../core/version.ts";
import { getString, type AttributeMap } from "../transport/attribute-values.ts";

/** Throws when a stored limit is of a kind that this version does not support. */
export function assertSupportedKind(
  item: AttributeMap,
  limitName: string,
  kindAttribute: string,
): void {
  const kind = getString(item[kindAttribute]);
  if (kind === undefined || kind === "rate") return;
  throw new IncompatibleSchemaError(
    `Limit ${limitName} is of the kind '${kind}', which this version does not support. ` +
      "Upgrade zae-limiter.",
    { clientVersion: VERSION, schemaVersion: getString(item["schema_version"]) ?? "unknown" },
  );
}

/**
 * What newer releases of the Python zae-limiter store beside limits: schedules, resets, limits that
 * never refuse, resources and entities that are disabled or cascade otherwise.
 */
const OF_PYTHON = /^(?:l_.+_(?:sched|rsched|soft)|w_.+|sched_tz|disabled|cascade)$/;

/** Throws when stored limits mean more than this version knows: they must not be read as less. */
export function assertNothingOfPython(item: AttributeMap): void {
  const found = Object.keys(item).find((attribute) => OF_PYTHON.test(attribute));
  if (found === undefined) return;
  throw new IncompatibleSchemaError(
    `The limits in ${getString(item["PK"])} have '${found}', which the Python zae-limiter wrote ` +
      "and this version does not support. Set these limits again.",
    { clientVersion: VERSION, schemaVersion: "unknown" },
  );
}
