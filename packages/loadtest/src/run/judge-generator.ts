import { readCounter, type Metrics } from "./metrics.ts";

/** What a script asks the generator for. */
export interface Plan {
  /** The users that are to arrive. */
  readonly arrivals: number;
  /** The time in which they are to arrive. */
  readonly seconds: number;
}

/** How far the generator of load kept to the plan. */
export interface Generator {
  readonly plannedArrivals: number;
  readonly createdArrivals: number;
  readonly plannedSeconds: number;
  /** Without the time of the longest user, who may go on after the last arrival. */
  readonly tookSeconds: number;
  /** The delay of the event loop; undefined when it was not measured. */
  readonly lagP99Us: number | undefined;
  /** Why it was too slow, as sentences; empty when it kept up. */
  readonly problems: readonly string[];
}

/** How far arrivals and run time may be from the plan. */
const MOST_DEVIATION = 0.05;

/** A start and an end on time are this imprecise, which is more than 5 % of a short run. */
const IMPRECISION_SECONDS = 0.5;

/** A generator that is this late measures itself, and not the store. */
const MOST_LAG_US = 20_000;

/**
 * Compares what the generator did with the plan. Latency is measured from when a user really
 * starts, so a generator that falls behind hides the waiting, and its run says nothing.
 */
export function judgeGenerator(plan: Plan, whole: Metrics): Generator {
  const created = readCounter(whole, "vusers.created");
  const longestSeconds = (whole.summaries["vusers.session_length"]?.max ?? 0) / 1000;
  const wholeSeconds = (whole.lastCounterAt - whole.firstCounterAt) / 1000;
  const took = Math.max(0, wholeSeconds - longestSeconds);
  const lag = whole.summaries["zae.generator.lag_us"]?.p99;
  const problems: string[] = [];
  if (Math.abs(created - plan.arrivals) > Math.max(1, plan.arrivals * MOST_DEVIATION))
    problems.push(`${created} of ${plan.arrivals} planned users arrived.`);
  const most = Math.max(plan.seconds * (1 + MOST_DEVIATION), plan.seconds + IMPRECISION_SECONDS);
  if (took > most)
    problems.push(`Arrivals took ${took.toFixed(1)} s instead of ${plan.seconds} s.`);
  if (lag !== undefined && lag > MOST_LAG_US)
    problems.push(`It was ${(lag / 1000).toFixed(0)} ms late (p99); at most 20 ms are sound.`);
  return {
    plannedArrivals: plan.arrivals,
    createdArrivals: created,
    plannedSeconds: plan.seconds,
    tookSeconds: took,
    lagP99Us: lag,
    problems,
  };
}
