import { ValidationError, VERSION } from "zae-limiter";
import { SCHEMA_VERSION } from "zae-limiter/dynamodb";

const MANAGER = ["ManagedBy", "zae-limiter"] as const;
const PREFIX = "zae-limiter:";
/** The tag with the version of the code of the functions. */
const LAMBDA_VERSION = `${PREFIX}lambda-version`;

/** Whether a stack with these tags was made by zae-limiter; the original sets the same ones. */
export function isOurs(tags: Readonly<Record<string, string>>): boolean {
  const [name, value] = MANAGER;
  return tags[name] === value && (tags[`${PREFIX}type`] ?? "limiter") === "limiter";
}

/**
 * The tags of a stack: those of the user, or those that it has, and ours, which win. `hasCode` says
 * whether its functions get the code of this version.
 */
export function stackTags(
  stack: string,
  wanted: {
    readonly user: Readonly<Record<string, string>> | undefined;
    readonly current: Readonly<Record<string, string>>;
    readonly hasCode: boolean;
  },
): Readonly<Record<string, string>> {
  const { user, current, hasCode } = wanted;
  const [manager, us] = MANAGER;
  const kept = Object.entries(current).filter(([name]) => !name.startsWith("aws:"));
  const others = kept.filter(([name]) => name !== manager && !name.startsWith(PREFIX));
  return {
    ...(user ?? Object.fromEntries(others)),
    [manager]: us,
    [`${PREFIX}name`]: stack,
    [`${PREFIX}type`]: "limiter",
    [`${PREFIX}version`]: VERSION,
    [`${PREFIX}schema-version`]: SCHEMA_VERSION,
    ...(hasCode && { [LAMBDA_VERSION]: VERSION }),
  };
}

/** The tags of a stack whose functions get the code of this version, and that stays as it is. */
export function withLambdaVersion(
  current: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  const kept = Object.entries(current).filter(([name]) => !name.startsWith("aws:"));
  return { ...Object.fromEntries(kept), [LAMBDA_VERSION]: VERSION };
}

/** CloudFormation allows 50, and six are our own. */
const MAX_TAGS = 44;

/** Throws for tags that AWS would refuse. */
export function checkTags(tags: unknown): void {
  if (typeof tags !== "object" || tags === null || Array.isArray(tags))
    throw new ValidationError("tags", tags, 'must be an object, such as { team: "search" }');
  const entries = Object.entries(tags as Record<string, unknown>);
  if (entries.length > MAX_TAGS)
    throw new ValidationError(
      "tags",
      entries.length,
      `must be at most ${MAX_TAGS}: AWS allows 50, and 6 are zae-limiter's own`,
    );
  for (const [key, value] of entries) {
    const field = `tags.${key}`;
    if (key.length < 1 || key.length > 128)
      throw new ValidationError("tags", key, "must have keys of 1 to 128 characters");
    if (/^aws:/i.test(key))
      throw new ValidationError(field, key, "must not begin with aws:, which AWS reserves");
    if (typeof value !== "string" || value.length > 256)
      throw new ValidationError(field, value, "must be a text of at most 256 characters");
  }
}
