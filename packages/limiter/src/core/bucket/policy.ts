import { bucketLimits, type BucketLimit } from "./bucket.ts";
import { ValidationError } from "../errors.ts";
import { DEFAULT_RESOURCE } from "../identifiers.ts";
import { MAX_LIMITS, type Limit } from "../limit.ts";
import type { SupportedLimit } from "../supported-limits.ts";

/** What to do when the store cannot be reached. */
export type OnUnavailable = "allow" | "block";

/** The level that the limits of a call came from. */
export type ConfigSource =
  | "entity"
  | "entity_default"
  | "resource"
  | "system"
  | "constructor"
  | "override";

/** The limits that apply to an entity and a resource, prepared for deciding. */
export interface Policy {
  /** The strongest level that the limits came from. */
  readonly source: ConfigSource;
  /** The levels of the limits that came from weaker levels, by name; usually there are none. */
  readonly inherited: ReadonlyMap<string, ConfigSource> | undefined;
  /** Whether limits of levels that are weaker than all of these apply too. */
  readonly inherits: boolean;
  /** The limits, in the order in which they were set. */
  readonly limits: readonly SupportedLimit[];
  /** The same limits, as buckets count them. */
  readonly bucketLimits: readonly BucketLimit[];
  /** The names of the limits. */
  readonly names: ReadonlySet<string>;
  /** The names that limits count instead of their own, by limit; undefined when none does. */
  readonly counts: ReadonlyMap<string, string> | undefined;
  /** What calls may state amounts by: the names of the limits, and those that limits count. */
  readonly knownNames: ReadonlySet<string>;
  /** Whether any of the limits has windows. */
  readonly hasWindows: boolean;
  /** The names of the limits that came from a limiter's defaults; undefined if there are none. */
  readonly fromCode: readonly string[] | undefined;
  /** The limiter's defaults that it was made with, whether they apply or not. */
  readonly defaults: Policy | undefined;
}

/** What one level stores for an entity and a resource. */
export interface StoredLevel {
  /** Which of the four levels it is. */
  readonly source: Exclude<ConfigSource, "constructor" | "override">;
  /** The limits stored there, in the order in which they were set. */
  readonly limits: readonly Limit[];
  /** Whether limits of the levels below apply too, unless this level has one of the same name. */
  readonly inherit: boolean;
}

/** The limits that apply to an entity and a resource, and the levels they came from. */
export interface ResolvedLimits {
  /** The strongest level's own limits first, then those that it inherits. */
  readonly limits: readonly Limit[];
  /** The stored choice of the system level; undefined if nothing is stored. */
  readonly onUnavailable: OnUnavailable | undefined;
  /** The strongest level that has limits. */
  readonly source: ConfigSource;
  /** The level of each limit, by name. */
  readonly sources: Readonly<Record<string, ConfigSource>>;
  /**
   * Every stored level of the entity and resource, strongest first, including those that a stronger
   * one hides.
   */
  readonly levels: readonly StoredLevel[];
}

/** Names one place where limits are stored. */
export type ConfigKey =
  | {
      /** The defaults of the namespace. */
      readonly level: "system";
    }
  | {
      /** The defaults of a resource. */
      readonly level: "resource";
      /** Which resource. */
      readonly resource: string;
    }
  | {
      /** The limits of an entity. */
      readonly level: "entity";
      /** Which entity. */
      readonly entityId: string;
      /** For which resource; `_default_` for all of them. */
      readonly resource: string;
    };

/** The level that a key belongs to. */
export function toSource(key: ConfigKey): ConfigSource {
  if (key.level !== "entity") return key.level;
  return key.resource === DEFAULT_RESOURCE ? "entity_default" : "entity";
}

/** Makes a policy from checked limits. */
export function buildPolicy(
  limits: readonly SupportedLimit[],
  source: ConfigSource,
  {
    inherits = false,
    inherited,
    defaults,
  }: Partial<Pick<Policy, "inherits" | "inherited" | "defaults">> = {},
): Policy {
  const prepared = bucketLimits(limits);
  const isFromCode = ({ name }: Limit): boolean =>
    (inherited?.get(name) ?? source) === "constructor";
  const fromCode = limits.filter(isFromCode).map(({ name }) => name);
  const names = new Set(limits.map((limit) => limit.name));
  const counting = limits.flatMap(({ name, counts }) =>
    counts === undefined ? [] : [[name, counts] as const],
  );
  const hasCounts = counting.length > 0;
  return {
    source,
    inherited,
    inherits,
    limits,
    bucketLimits: prepared,
    names,
    counts: hasCounts ? new Map(counting) : undefined,
    knownNames: hasCounts ? new Set([...names, ...counting.map(([, name]) => name)]) : names,
    hasWindows: prepared.some(({ window }) => window !== undefined),
    fromCode: fromCode.length === 0 ? undefined : fromCode,
    defaults,
  };
}

/** Makes the policy of a limiter's checked defaults, which is the same for all of its calls. */
export function buildDefaults(limits: readonly SupportedLimit[]): Policy {
  const policy: { -readonly [Key in keyof Policy]: Policy[Key] } = buildPolicy(
    limits,
    "constructor",
    { inherits: true },
  );
  policy.defaults = policy;
  return Object.freeze(policy);
}

/** The level for the limits stored under a key, or `undefined` if there are none. */
export function levelAt(
  key: ConfigKey,
  {
    limits,
    inherit = false,
  }: {
    readonly limits: readonly SupportedLimit[] | undefined;
    readonly inherit?: boolean | undefined;
  },
): Policy | undefined {
  return limits === undefined
    ? undefined
    : buildPolicy(limits, toSource(key), { inherits: inherit });
}

/**
 * The policy that stored levels make, given the levels strongest first. It ends at the first level
 * that does not inherit.
 */
export function resolvePolicy(levels: readonly (Policy | undefined)[]): Policy | undefined {
  const index = levels.findIndex((level) => level !== undefined);
  const level = levels[index];
  if (level?.inherits !== true) return level;
  const below = resolvePolicy(levels.slice(index + 1));
  return below === undefined ? level : mergePolicies(level, below);
}

/**
 * What stored levels and a limiter's defaults make: the defaults apply where no stored level has a
 * limit of that name, unless a stored level hides what is below.
 */
export function withDefaults(
  stored: Policy | undefined,
  defaults: Policy | undefined,
): Policy | undefined {
  return stored === undefined || defaults === undefined
    ? (stored ?? defaults)
    : mergePolicies(stored, defaults);
}

/**
 * A level over the policy of the levels below it: the level's own limits first, then those that it
 * has not replaced, in their order. The same two always give the same policy, so that a warm
 * acquire merges nothing, and comparing its limits with those of a bucket stays cheap.
 */
function mergePolicies(level: Policy, below: Policy): Policy {
  const memo = MERGE_MEMO.get(level) ?? new WeakMap<Policy, Policy>();
  MERGE_MEMO.set(level, memo);
  const held = memo.get(below) ?? mergeLevel(level, below);
  memo.set(below, held);
  return held;
}

/** The level that one limit of a policy came from. */
export function sourceOfLimit({ inherited, source }: Policy, limitName: string): ConfigSource {
  return inherited?.get(limitName) ?? source;
}

/**
 * What each level gave with each policy below it. A level of an entity for all its resources meets
 * several of these; none is kept longer than the levels that it was made of.
 */
const MERGE_MEMO = new WeakMap<Policy, WeakMap<Policy, Policy>>();

function mergeLevel(level: Policy, below: Policy): Policy {
  const { defaults } = below;
  if (!level.inherits) return { ...level, defaults };
  const inherited = below.limits.filter(({ name }) => !level.names.has(name));
  const limits = [...level.limits, ...inherited];
  const sources = new Map(level.inherited);
  for (const { name } of inherited) sources.set(name, sourceOfLimit(below, name));
  const levels = [...new Set([level.source, ...sources.values()])];
  if (limits.length > MAX_LIMITS)
    throw new ValidationError(
      "limits",
      limits.length,
      `must hold at most ${MAX_LIMITS} limits, which ${levels.join(", ")} exceed together; set fewer, or store one of these levels with inherit: false`,
    );
  return buildPolicy(limits, level.source, {
    inherits: below.inherits,
    inherited: sources,
    defaults,
  });
}

/** Returns a valid choice of what to do when the store cannot be reached, or throws. */
export function checkOnUnavailable(value: unknown): OnUnavailable {
  if (value !== "allow" && value !== "block")
    throw new ValidationError("onUnavailable", value, "must be 'allow' or 'block'");
  return value;
}
