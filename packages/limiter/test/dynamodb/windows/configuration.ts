import { Limit } from "zae-limiter";
import type { SupportedLimit } from "../../../src/core/supported-limits.ts";
import type { Random } from "../../../src/repository/system-clock.ts";
import { between, pick } from "../../support/seeded/random-choice.ts";

/** Equal windows by two calendars of the same boundaries, and by one of other boundaries. */
const CALENDARS = {
  minute: ["cron(*_*_*_*_*)@UTC", "cron(*_*_*_*_*)@Africa/Abidjan", "cron(*/2_*_*_*_*)@UTC"],
  hour: ["hour@UTC", "hour@Africa/Abidjan", "day@UTC"],
  day: ["day@UTC", "day@Africa/Abidjan", "hour@UTC"],
} as const;

/** What windows of a seed begin by. */
export type Period = keyof typeof CALENDARS;

/** Their lengths. */
export const PERIODS_MS: Readonly<Record<Period, number>> = {
  minute: 60_000,
  hour: 3_600_000,
  day: 86_400_000,
};

/** How configuration changes. */
export const CHANGES = ["capacity", "definition", "kind", "list"] as const;

/** One of these ways. */
export type Change = (typeof CHANGES)[number];

/** The limits with windows. */
export const NAMES = ["q", "s"] as const;

interface Spec {
  capacity: number;
  /** What follows the amount in the text form. */
  span: string;
  isListed: boolean;
}

/** The configuration of one entity, as it changes. */
export class Configuration {
  readonly #random: Random;
  readonly #period: Period;
  readonly #specs: Readonly<Record<(typeof NAMES)[number], Spec>>;

  constructor(random: Random, period: Period) {
    this.#random = random;
    this.#period = period;
    const spec = (span: string): Spec => ({ capacity: this.#someCapacity(), span, isListed: true });
    this.#specs = { q: spec(CALENDARS[period][0]), s: spec(this.#someSession()) };
  }

  get limits(): readonly SupportedLimit[] {
    return [
      Limit.perSecond("r", 100, { burst: 1000 }),
      ...NAMES.flatMap((name) => {
        const { capacity, span, isListed } = this.#specs[name];
        const limit = Limit.parse(`${name}:${capacity}/${span}`) as SupportedLimit;
        return isListed ? [limit] : [];
      }),
    ];
  }

  /** What each limit can hold. */
  get capacities(): Readonly<Record<string, number>> {
    return Object.fromEntries(NAMES.map((name) => [name, this.#specs[name].capacity]));
  }

  change(change: Change): void {
    const name = pick(this.#random, NAMES);
    const spec = this.#specs[name];
    if (change === "capacity") spec.capacity = this.#someCapacity();
    else if (change === "list") spec.isListed = !spec.isListed;
    else if (change === "kind") spec.span = this.#otherKind(spec.span);
    else if (spec.span.includes("session")) spec.span = this.#someSession();
    else if (spec.span.includes("@")) spec.span = this.#otherCalendar(spec.span);
  }

  /** More often one of the same boundaries. */
  #otherCalendar(span: string): string {
    const [one, other, longer] = CALENDARS[this.#period];
    if (this.#random() < 0.2) return longer;
    return span === one ? other : one;
  }

  #otherKind(span: string): string {
    const spans = ["min", CALENDARS[this.#period][0], this.#someSession()];
    return pick(
      this.#random,
      spans.filter((other) => other !== span),
    );
  }

  #someCapacity(): number {
    return between(this.#random, 3, 30);
  }

  #someSession(): string {
    const seconds = PERIODS_MS[this.#period] / 1000;
    return `session(${pick(this.#random, [seconds, seconds / 2, seconds / 4])}sec)`;
  }
}
