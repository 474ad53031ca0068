import {
  getBoolean,
  getNumber,
  getString,
  type AttributeMap,
} from "zae-limiter/dynamodb-internals";

/** "There is none", where a limit does not share the schedule of its item. */
const NO_SCHEDULE = "-";

/** Something that this library does not have. */
export interface Unsupported {
  readonly reason: string;
  /** Whether the limit itself is carried over, without what is not supported. */
  readonly isKept: boolean;
}

/**
 * Finds a feature of a Python zae-limiter limit that this library does not have; undefined if there
 * is none. Its attributes begin with `prefix`: `b_{name}_` on buckets, `l_{name}_` or `w_{name}_`
 * in configuration.
 */
export function findUnsupported(item: AttributeMap, prefix: string): Unsupported | undefined {
  if (item[`${prefix}rsa`] !== undefined) return toLost("a quota for a duration");
  if (hasSchedule(item, prefix, "rsched")) return toLost("a quota that is reset on schedule");
  if ((getNumber(item[`${prefix}ra`]) ?? 0) <= 0) return toLost("a limit that is never refilled");
  if (item[`${prefix}soft`] !== undefined)
    return toLost("a soft limit, which is counted and not enforced");
  if (hasSchedule(item, prefix, "sched"))
    return { reason: "a schedule, without which the limit would hold at all times", isKept: true };
  return undefined;
}

function toLost(reason: string): Unsupported {
  return { reason, isKept: false };
}

/**
 * Finds a setting of a whole level that this library does not support; undefined if there is none.
 */
export function findUnsupportedLevel(item: AttributeMap): string | undefined {
  const { disabled, cascade } = item;
  if (getString(disabled) !== undefined) return "bypassed";
  if (getBoolean(disabled) === true) return "disabled";
  return getBoolean(cascade) === undefined ? undefined : "a cascade policy of its own";
}

/** On a bucket, the schedule of the item holds for limits that do not say otherwise. */
function hasSchedule(item: AttributeMap, prefix: string, field: "sched" | "rsched"): boolean {
  const own = getString(item[prefix + field]);
  if (own !== undefined) return own !== NO_SCHEDULE;
  if (!prefix.startsWith("b_")) return false;
  // A reset belongs to quotas only, which are never refilled otherwise.
  const isRefilled = (getNumber(item[`${prefix}ra`]) ?? 0) > 0;
  return item[field] !== undefined && (field === "sched" || !isRefilled);
}
