import type { Stack } from "@aws-sdk/client-cloudformation";

/** The versions that the tags of a stack name. */
export interface TaggedVersions {
  readonly version?: string;
  readonly lambdaVersion?: string;
  readonly schemaVersion?: string;
}

/** What the tags of a stack of zae-limiter say. */
export interface OurTags {
  readonly versions: TaggedVersions;
}

/** The name of a stack that an early release of the original made begins so, and has no tags. */
const LEGACY_PREFIX = "ZAEL-";

/**
 * What the tags say of a stack of zae-limiter, this one's or the original's; undefined for any
 * other stack. The original also tags the stacks of its load tests, with another type.
 */
export function ourTags({ StackName = "", Tags = [] }: Stack): OurTags | undefined {
  const tags = new Map(Tags.map(({ Key, Value }) => [Key, Value]));
  const isTagged =
    tags.get("ManagedBy") === "zae-limiter" &&
    (tags.get("zae-limiter:type") ?? "limiter") === "limiter";
  if (!isTagged && !(StackName.startsWith(LEGACY_PREFIX) && !tags.has("ManagedBy")))
    return undefined;
  const [version, lambdaVersion, schemaVersion] = ["", "lambda-", "schema-"].map((part) =>
    tags.get(`zae-limiter:${part}version`),
  );
  return {
    versions: {
      ...(version && { version }),
      ...(lambdaVersion && { lambdaVersion }),
      ...(schemaVersion && { schemaVersion }),
    },
  };
}
