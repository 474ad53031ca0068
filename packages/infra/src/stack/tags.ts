import { VERSION } from "zae-limiter";
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
