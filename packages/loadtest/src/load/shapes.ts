import { ValidationError } from "zae-limiter";
import type { Phase } from "../engine/artillery.ts";

/** How much load a shape makes, and for how long. */
export interface ShapeOptions {
  /** The whole duration, in whole seconds. */
  readonly durationSeconds: number;
  /** The highest number of new users a second. */
  readonly rate: number;
}

/** The load of a day by hour, as parts of the peak: a rise until 10, and a dip at noon. */
const HOURS = [
  0.12, 0.1, 0.08, 0.08, 0.1, 0.15, 0.25, 0.45, 0.75, 0.95, 1, 0.97, 0.85, 0.9, 0.98, 0.95, 0.88,
  0.75, 0.6, 0.5, 0.42, 0.35, 0.25, 0.18,
] as const;

/** Longer runs belong to a scheduler. A week. */
const LONGEST_SECONDS = 604_800;

/** One worker makes no more than about 50 000 a second, and no machine has more than 20 of them. */
const HIGHEST_RATE = 1_000_000;

/**
 * The load of a day, compressed into the duration.
 * @example const phases = daily({ durationSeconds: 600, rate: 200 });
 */
export function daily(options: ShapeOptions): readonly Phase[] {
  return buildCurve(options, (part) => {
    const hour = part * 23;
    const before = HOURS[Math.floor(hour)]!;
    return before + (HOURS[Math.ceil(hour)]! - before) * (hour % 1);
  });
}

/**
 * A fifth of the rate, a spike at the full rate in the middle fifth, and a fifth again.
 * @example const phases = spike({ durationSeconds: 60, rate: 500 });
 */
export function spike(options: ShapeOptions): readonly Phase[] {
  return buildCurve(options, (part) => (part >= 0.4 && part < 0.6 ? 1 : 0.2));
}

/**
 * Equal steps up to the rate.
 * @example const phases = steps({ durationSeconds: 60, rate: 500, count: 5 });
 */
export function steps({
  count = 5,
  ...options
}: ShapeOptions & {
  /** How many steps. @default 5 */
  readonly count?: number;
}): readonly Phase[] {
  checkWhole("count", count, LONGEST_SECONDS);
  return buildCurve(options, (part) => (Math.min(Math.floor(part * count), count - 1) + 1) / count);
}

/**
 * The same rate all the time.
 * @example const phases = constant({ durationSeconds: 60, rate: 100 });
 */
export function constant(options: ShapeOptions): readonly Phase[] {
  return buildCurve(options, () => 1);
}

/**
 * A rise from nothing to the rate.
 * @example const phases = ramp({ durationSeconds: 60, rate: 100 });
 */
export function ramp(options: ShapeOptions): readonly Phase[] {
  return buildCurve(options, (part) => part);
}

/** Every shape, by name. */
export const SHAPES: Readonly<Record<string, (options: ShapeOptions) => readonly Phase[]>> = {
  constant,
  daily,
  ramp,
  spike,
  steps: (options) => steps(options),
};

/**
 * The number of users that Artillery creates in these phases. It cuts the interval of a rate to
 * whole microseconds, in each worker, so that high rates make some more than they say. Without
 * `workers`, it counts for one.
 * @example const planned = countArrivals(spike({ durationSeconds: 60, rate: 500 }));
 */
export function countArrivals(phases: readonly Phase[], workers = 1): number {
  return phases.reduce((sum, phase) => sum + countInPhase(phase, workers), 0);
}

function countInPhase({ duration = 0, arrivalRate = 0 }: Phase, workers: number): number {
  return divide(arrivalRate, workers)
    .map((rate) => countUniform(rate, duration))
    .reduce((sum, count) => sum + count, 0);
}

function countUniform(rate: number, duration: number): number {
  return rate === 0 ? 0 : Math.floor((duration * 1e6) / Math.floor(1e6 / rate));
}

/** How Artillery divides a rate among its workers: whole numbers, the first ones get the rest. */
function divide(rate: number, workers: number): readonly number[] {
  const share = Math.floor(rate / workers);
  return Array.from({ length: workers }, (_, index) => share + (index < rate % workers ? 1 : 0));
}

/**
 * A curve as phases: each second has its own rate, and seconds of one rate make one phase. A phase
 * of nothing must be a pause: Artillery ignores a rate of 0.
 */
function buildCurve(
  { durationSeconds, rate }: ShapeOptions,
  getPart: (part: number) => number,
): readonly Phase[] {
  checkWhole("durationSeconds", durationSeconds, LONGEST_SECONDS);
  checkWhole("rate", rate, HIGHEST_RATE);
  const phases: { duration: number; arrivalRate: number }[] = [];
  for (let second = 0; second < durationSeconds; second += 1) {
    const arrivalRate = Math.round(rate * getPart(second / Math.max(1, durationSeconds - 1)));
    const last = phases.at(-1);
    if (last?.arrivalRate === arrivalRate) last.duration += 1;
    else phases.push({ duration: 1, arrivalRate });
  }
  return phases.map(({ duration, arrivalRate }) =>
    arrivalRate === 0 ? { pause: duration } : { duration, arrivalRate },
  );
}

/** Throws for what is not a whole number from 1 to `most`. */
export function checkWhole(field: string, value: unknown, most: number): void {
  if (typeof value !== "number" || !Number.isInteger(value) || value < 1 || value > most)
    throw new ValidationError(field, value, `must be a whole number from 1 to ${most}`);
}
