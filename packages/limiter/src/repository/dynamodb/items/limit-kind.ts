import { IncompatibleSchemaError } from "../../../core/errors.ts";
import { VERSION } from "../../../core/version.ts";
import { stringOf, type AttributeMap } from "../transport/attribute-values.ts";

/** Throws when a stored limit is of a kind that this version does not support. */
export function assertSupportedKind(
  item: AttributeMap,
  limitName: string,
  kindAttribute: string,
): void {
  const kind = stringOf(item[kindAttribute]);
  if (kind === undefined || kind === "rate") return;
  throw new IncompatibleSchemaError(
    `Limit ${limitName} is of the kind '${kind}', which this version does not support. ` +
      "Upgrade zae-limiter.",
    { clientVersion: VERSION, schemaVersion: stringOf(item["schema_version"]) ?? "unknown" },
  );
}
