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

/** What every limit has. */
interface LimitBase extends LimitOptions {
  /** What amounts refer to, such as `rpm`: a letter, then letters, digits and `_ . -`. */
  readonly name: string;
  /** The most that it can hold, in whole tokens: the burst of a rate. */
  readonly capacity: number;
}

/** A token bucket, in whole tokens and seconds. A limit without `kind` is one. */
export interface RateLimit extends LimitBase {
  /** May be left out. @default "rate" */
  readonly kind?: "rate";
  /** Whole tokens that flow back in every `refillPeriodSeconds`, continuously. */
  readonly refillAmount: number;
  /** The period of the refill, in whole seconds: 60 for a limit per minute. */
  readonly refillPeriodSeconds: number;
}

/** A limit that is full again at boundaries of the calendar. */
export interface QuotaLimit extends LimitBase {
  /** Its balance is full again at boundaries of the calendar. */
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
  /** Its windows begin with their first use. */
  readonly kind: "session";
  /** The length of a window, in whole seconds: at most 366 days. */
  readonly windowSeconds: number;
  /** As for quotas. */
  readonly alerts?: readonly number[];
}

/** How much may run at once. */
export interface InFlightLimit extends LimitBase {
  /** It counts what runs, not what was used. */
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

/** The most whole tokens that a limit ever holds, with what it carries over unused. */
export function computeMostHeld(limit: AnyLimit): number {
  const unused = limit.kind === "quota" ? (limit.carry?.unused ?? 0) : 0;
  return limit.capacity + unused;
}

/** The kinds of limits. */
export type LimitKind = NonNullable<AnyLimit["kind"]>;

/** A day of the week. */
export type Weekday =
  | "monday"
  | "tuesday"
  | "wednesday"
  | "thursday"
  | "friday"
  | "saturday"
  | "sunday";

/** When the windows of a quota end, by the clocks of a time zone. */
export type Calendar = {
  /** The name of an IANA time zone, such as `Europe/Berlin`. */
  readonly zone: string;
} & (
  | {
      /** Whenever the wall clock shows :00. */
      readonly every: "hour";
    }
  | {
      /** On every day. */
      readonly every: "day";
      /** The time of day, "HH:MM". @default "00:00" */
      readonly at?: string;
    }
  | {
      /** On one day of every week. */
      readonly every: "week";
      /** The day on which the weeks begin. @default "monday" */
      readonly weekday?: Weekday;
      /** The time of day, "HH:MM". @default "00:00" */
      readonly at?: string;
    }
  | {
      /** On one day of every month. */
      readonly every: "month";
      /** 1 … 31, and the last day of months that are shorter. @default 1 */
      readonly day?: number;
      /** The time of day, "HH:MM". @default "00:00" */
      readonly at?: string;
    }
  | {
      /** The fields minute, hour, day, month and weekday, such as "0 9 * * mon-fri". */
      readonly cron: string;
    }
);

/** What crosses the end of a quota's window. */
export interface Carry {
  /** Whether debt does. @default false */
  readonly debt?: boolean;
  /** At most this much of what was not used. @default nothing */
  readonly unused?: number;
}

/** Other numbers of a limit at certain hours. */
export type Profile = {
  /** Days, hours, or both: "mon-fri 09:00-17:00", "sat,sun" or "22:00-06:00". */
  readonly when: string;
  /** The IANA time zone of the hours. */
  readonly zone: string;
} & (
  | {
      /** A part of capacity and refill, 1 … 10 000. */
      readonly percent: number;
    }
  | {
      /** The capacity instead of the limit's own. */
      readonly capacity: number;
      /** The refill of a rate instead of its own. @default the capacity */
      readonly refillAmount?: number;
    }
);
