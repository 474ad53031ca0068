import { checkLimit, LIMIT_OPTION_NAMES } from "./check-limit.ts";
import { ValidationError } from "./errors.ts";
import {
  isRate,
  type AnyLimit,
  type Calendar,
  type InFlightLimit,
  type LimitOptions,
  type QuotaLimit,
  type RateLimit,
  type SessionLimit,
} from "./limit-kinds.ts";
import { DEFAULT_HOLD_SECONDS, formatLimit, parseLimit } from "./limit-text.ts";
import { checkOptions } from "./options.ts";

/** A limit of any kind: a rate, a quota, a session, or how much may be in flight. */
export type Limit = AnyLimit;

/** Makes a limit of `rate` whole tokens per period, refilled continuously within it. */
type LimitOf = (
  name: string,
  rate: number,
  options?: {
    /** The capacity, in whole tokens: the most that can be taken at once. @default the rate */
    readonly burst?: number;
  } & LimitOptions,
) => RateLimit;

/**
 * Makes limits.
 *
 * @example
 * Limit.perMinute("tpm", 10_000, { burst: 15_000 });
 * Limit.parse("tpm:10000/min:15000");
 */
export const Limit: {
  /**
   * Makes a limit of `rate` tokens a second. It refills continuously; `burst` is its capacity.
   * @example Limit.perSecond("rps", 10, { burst: 50 });
   */
  readonly perSecond: LimitOf;
  /**
   * Makes a limit of `rate` tokens a minute, refilled continuously: after 6 s, a tenth is back.
   * `burst` is its capacity, by default the rate, so an idle bucket holds one minute's worth.
   * @example Limit.perMinute("tpm", 10_000, { burst: 15_000 });
   */
  readonly perMinute: LimitOf;
  /**
   * Makes a limit of `rate` tokens an hour. It refills continuously; `burst` is its capacity.
   * @example Limit.perHour("images", 100);
   */
  readonly perHour: LimitOf;
  /**
   * Makes a limit of `rate` tokens in 24 hours. It refills continuously, not at midnight.
   * @example Limit.perDay("tpd", 1_000_000);
   */
  readonly perDay: LimitOf;
  /**
   * Makes a limit of `capacity` tokens in each window of the calendar. Nothing crosses the end of a
   * window, unless `carry` says so.
   * @example Limit.quota("tpd", 1_000_000, { every: "day", zone: "Europe/Berlin" });
   */
  quota(
    name: string,
    capacity: number,
    resets: Calendar,
    options?: Pick<QuotaLimit, "carry" | "alerts"> & LimitOptions,
  ): QuotaLimit;
  /**
   * Makes a limit of `capacity` tokens in windows that begin with their first use.
   * @example Limit.session("messages", 45, { windowSeconds: 5 * 3600 });
   */
  session(
    name: string,
    capacity: number,
    window: Pick<SessionLimit, "windowSeconds">,
    options?: Pick<SessionLimit, "alerts"> & LimitOptions,
  ): SessionLimit;
  /**
   * Makes a limit of how much may run at once. What is neither ended nor renewed is free again
   * after about `holdSeconds`, by default 60.
   * @example Limit.inFlight("running", 20);
   */
  inFlight(
    name: string,
    capacity: number,
    options?: Partial<Pick<InFlightLimit, "holdSeconds">> & LimitOptions,
  ): InFlightLimit;
  /**
   * Returns a frozen copy of a valid limit, without its defaults, or throws.
   * @example
   * Limit.custom({ name: "rpm", capacity: 20, refillAmount: 10, refillPeriodSeconds: 30 });
   */
  custom<L extends Limit>(limit: L): L;
  /**
   * Parses the text form of a limit, as the command line does: `name:rate[/period][:burst]` for a
   * rate, `tpd:1000000/day@Europe/Berlin`, `messages:45/session(5hour)` or `running:20/inflight`.
   * @example
   * Limit.parse("tpm:10000/min:15000"); // the same as perMinute("tpm", 10_000, { burst: 15_000 })
   */
  parse(text: string): Limit;
  /**
   * Returns the text that `parse` reads. It never has a space.
   * @example Limit.format(Limit.perMinute("rpm", 60)); // "rpm:60/min"
   */
  format(limit: Limit): string;
} = Object.freeze({
  perSecond: limitPer(1),
  perMinute: limitPer(60),
  perHour: limitPer(3600),
  perDay: limitPer(86_400),
  quota: (name, capacity, resets, options = {}) => {
    checkConstructorOptions(options, ["carry", "alerts"]);
    return checkLimit({ ...options, kind: "quota", name, capacity, resets });
  },
  session: (name, capacity, window, options = {}) => {
    checkOptions(window, new Set(["windowSeconds"]), "a session");
    checkConstructorOptions(options, ["alerts"]);
    const { windowSeconds } = window;
    return checkLimit({ ...options, kind: "session", name, capacity, windowSeconds });
  },
  inFlight: (name, capacity, options = {}) => {
    checkConstructorOptions(options, ["holdSeconds"]);
    const { holdSeconds = DEFAULT_HOLD_SECONDS } = options;
    return checkLimit({ ...options, kind: "inflight", name, capacity, holdSeconds });
  },
  custom: checkLimit,
  parse: (text: string) => checkLimit(parseLimit(text)),
  format: (limit: Limit) => formatLimit(checkLimit(limit)),
} satisfies typeof Limit);

/**
 * Returns frozen copies of limits with distinct names, or throws. An empty list is refused, because
 * it would silently mean "unlimited".
 */
export function checkLimits(limits: readonly Limit[], field = "limits"): readonly Limit[] {
  if (!Array.isArray(limits))
    throw new ValidationError(field, limits, "must be an array of limits");
  if (limits.length === 0)
    throw new ValidationError(
      field,
      limits,
      "must name at least one limit; to remove limits, delete them",
    );
  if (limits.length > MAX_LIMITS)
    throw new ValidationError(field, limits.length, `must hold at most ${MAX_LIMITS} limits`);
  const checked = limits.map((limit: Limit) => checkLimit(limit));
  const names = new Set<string>();
  for (const { name } of checked) {
    if (names.has(name)) throw new ValidationError(field, name, `the name '${name}' appears twice`);
    names.add(name);
  }
  return Object.freeze(checked);
}

/** Whether two lists hold the same limits, in any order. */
export function sameLimits(left: readonly Limit[], right: readonly Limit[]): boolean {
  return (
    left.length === right.length &&
    left.every((limit) => right.some((other) => sameLimit(limit, other)))
  );
}

/** Most limits on one resource: a stored bucket has to fit the item size of every backend. */
export const MAX_LIMITS = 32;

function sameLimit(left: Limit, right: Limit): boolean {
  if (left.name !== right.name || left.capacity !== right.capacity) return false;
  if (!isPlainRate(left) || !isPlainRate(right)) return formatLimit(left) === formatLimit(right);
  return (
    left.refillAmount === right.refillAmount &&
    left.refillPeriodSeconds === right.refillPeriodSeconds
  );
}

/** Most limits are rates without options. Comparing their numbers is faster than their texts. */
function isPlainRate(limit: Limit): limit is RateLimit {
  if (!isRate(limit)) return false;
  const { counts, soft, schedule, reserve } = limit;
  return (counts ?? soft ?? schedule ?? reserve) === undefined;
}

function limitPer(refillPeriodSeconds: number): LimitOf {
  return (name, rate, given = {}) => {
    checkConstructorOptions(given, ["burst"]);
    const { burst: capacity = rate, ...options } = given;
    return checkLimit({ ...options, name, capacity, refillAmount: rate, refillPeriodSeconds });
  };
}

function checkConstructorOptions(options: object, names: readonly string[]): void {
  checkOptions(options, new Set([...names, ...LIMIT_OPTION_NAMES]), "a limit");
}
