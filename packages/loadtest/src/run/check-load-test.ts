import { ValidationError } from "zae-limiter";

/** A day of load, and more than a generator can do. */
const RANGES = {
  durationSeconds: [1, 86_400],
  rate: [0.1, 100_000],
  users: [1, 10_000_000],
  p99BoundMs: [0.001, 600_000],
} as const;

/** Throws `ValidationError` for a number that is out of range. */
export function checkRanges(values: Readonly<Partial<Record<keyof typeof RANGES, number>>>): void {
  for (const name of Object.keys(RANGES) as (keyof typeof RANGES)[]) {
    const [least, most] = RANGES[name];
    const value = values[name];
    if (value !== undefined && !(value >= least && value <= most))
      throw new ValidationError(name, value, `must be from ${least} to ${most}`);
  }
}
