/** What every kind of limit may have besides its numbers. Only configuration holds it. */
export interface LimitOptions {
  /** The name that calls state its amounts by. @default its own name */
  readonly counts?: string;
  /** Never refuses: what goes beyond the limit is counted. @default false */
  readonly soft?: boolean;
  /** Other numbers at certain hours, at most 8. The first profile that matches holds. */
  readonly schedule?: readonly Profile[];
  /** By priority class, at most 8: how much calls of that class must leave for others. */
  readonly reserve?: Readonly<Record<string, number>>;
}

interface LimitBase extends LimitOptions {
  /** What amounts refer to, such as `rpm`: a letter, then letters, digits and `_ . -`. */
  readonly name: string;
  /** The most that it can hold, in whole tokens: the burst of a rate. */
  readonly capacity: number;
}

/** A token bucket, in whole tokens and seconds. A limit without `kind` is one. */
export interface RateLimit extends LimitBase {
  readonly kind?: "rate";
  /** Whole tokens that flow back in every `refillPeriodSeconds`, continuously. */
  readonly refillAmount: number;
  /** The period of the refill, in whole seconds: 60 for a limit per minute. */
  readonly refillPeriodSeconds: number;
}

/** A limit that is full again at boundaries of the calendar. */
export interface QuotaLimit extends LimitBase {
  readonly kind: "quota";
  /** When its windows end. */
  readonly resets: Calendar;
  /** What crosses the end of a window. @default nothing */
  readonly carry?: Carry;
  /** Percentages of the capacity that are announced when used: 1 … 200, rising, at most 8. */
  readonly alerts?: readonly number[];
}

/** A limit whose windows begin with their first use. */
export interface SessionLimit extends LimitBase {
  readonly kind: "session";
  /** The length of a window, in whole seconds: at most 366 days. */
  readonly windowSeconds: number;
  /** As for quotas. */
  readonly alerts?: readonly number[];
}

/** How much may run at once. */
export interface InFlightLimit extends LimitBase {
  readonly kind: "inflight";
  /** After about this long, what is neither ended nor renewed is free again: 10 s … 1 day. */
  readonly holdSeconds: number;
}

/** Any kind of limit. */
export type AnyLimit = RateLimit | QuotaLimit | SessionLimit | InFlightLimit;

/** Whether a limit refills all the time. */
export function isRate(limit: AnyLimit): limit is RateLimit {
  return limit.kind === undefined || limit.kind === "rate";
}

/** The kinds of limits. */
export type LimitKind = NonNullable<AnyLimit["kind"]>;

/** The days of the week, Monday first, as ISO 8601 counts them. */
export const WEEKDAYS = [
  "monday",
  "tuesday",
  "wednesday",
  "thursday",
  "friday",
  "saturday",
  "sunday",
] as const;

/** A day of the week. */
export type Weekday = (typeof WEEKDAYS)[number];

/**
 * When the windows of a quota end, by the clocks of an IANA time zone. `at` is "HH:MM", by default
 * midnight; `day` is 1 … 31, by default 1, and the last day of shorter months; weeks begin on
 * Monday by default; `cron` has the fields minute, hour, day, month, weekday.
 */
export type Calendar =
  | { readonly every: "hour"; readonly zone: string }
  | { readonly every: "day"; readonly zone: string; readonly at?: string }
  | {
      readonly every: "week";
      readonly zone: string;
      readonly weekday?: Weekday;
      readonly at?: string;
    }
  | {
      readonly every: "month";
      readonly zone: string;
      readonly day?: number;
      readonly at?: string;
    }
  | { readonly cron: string; readonly zone: string };

/** What crosses the end of a quota's window. */
export interface Carry {
  /** Whether debt does. @default false */
  readonly debt?: boolean;
  /** At most this much of what was not used. @default nothing */
  readonly unused?: number;
}

/**
 * Other numbers while `when` matches in a time zone: "mon-fri 09:00-17:00", "sat,sun" or
 * "22:00-06:00". `percent` is 1 … 10 000, of capacity and refill; `refillAmount` is of rates, and
 * by default the capacity.
 */
export type Profile = { readonly when: string; readonly zone: string } & (
  | { readonly percent: number }
  | { readonly capacity: number; readonly refillAmount?: number }
);
