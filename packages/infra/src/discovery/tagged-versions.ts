import type { Stack } from "@aws-sdk/client-cloudformation";
import { isOurs } from "../options/tags.ts";

/** The versions that the tags of a stack name. */
export interface TaggedVersions {
  readonly version?: string;
  readonly lambdaVersion?: string;
  readonly schemaVersion?: string;
}

/** How the names of stacks begin that early releases of the original made. They have no tags. */
const LEGACY_PREFIX = "ZAEL-";

/** The versions of a stack of zae-limiter; undefined for any other stack. */
export function readTaggedVersions({
  StackName = "",
  Tags = [],
}: Stack): TaggedVersions | undefined {
  const tags = Object.fromEntries(Tags.map(({ Key = "", Value = "" }) => [Key, Value]));
  const isLegacy = StackName.startsWith(LEGACY_PREFIX) && tags["ManagedBy"] === undefined;
  if (!isOurs(tags) && !isLegacy) return undefined;
  const [version, lambdaVersion, schemaVersion] = ["", "lambda-", "schema-"].map(
    (part) => tags[`zae-limiter:${part}version`],
  );
  return {
    ...(version && { version }),
    ...(lambdaVersion && { lambdaVersion }),
    ...(schemaVersion && { schemaVersion }),
  };
}
