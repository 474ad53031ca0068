import type { Tokens } from "./oracle-bucket.ts";

/** What was consumed within one window. */
export interface WindowSum {
  readonly startMs: number;
  readonly endMs: number;
  requests: number;
  readonly counters: Map<string, number>;
}

/** The three lengths of windows, in UTC. */
export type WindowLength = "hourly" | "daily" | "monthly";

type Windows = Readonly<Record<WindowLength, Map<number, WindowSum>>>;

const NO_WINDOWS: ReadonlyMap<number, WindowSum> = new Map();

/** Promise 8: every change of consumption, summed by the time at which it was written. */
export class OracleUsage {
  readonly #windows = new Map<string, Windows>();

  record(bucketKey: string, atMs: number, tokens: Tokens, requests: number): void {
    const windows = this.#windows.get(bucketKey) ?? {
      hourly: new Map(),
      daily: new Map(),
      monthly: new Map(),
    };
    this.#windows.set(bucketKey, windows);
    for (const [length, startMs, endMs] of windowsAround(atMs)) {
      const sums = windows[length];
      const sum = sums.get(startMs) ?? {
        startMs,
        endMs,
        requests: 0,
        counters: new Map<string, number>(),
      };
      sums.set(startMs, sum);
      sum.requests += requests;
      for (const name in tokens)
        sum.counters.set(name, (sum.counters.get(name) ?? 0) + tokens[name]!);
    }
  }

  /** The windows of one bucket, by their start. */
  windows(bucketKey: string, length: WindowLength): ReadonlyMap<number, WindowSum> {
    return this.#windows.get(bucketKey)?.[length] ?? NO_WINDOWS;
  }
}

type Around = readonly (readonly [WindowLength, number, number])[];

/** By hour, because no window begins within one. */
const known = new Map<number, Around>();

/** The start and end of the window that holds a time. */
export function windowAround(length: WindowLength, atMs: number): readonly [number, number] {
  const [, startMs, endMs] = windowsAround(atMs).find(([other]) => other === length)!;
  return [startMs, endMs];
}

/** The windows that hold a time, from the calendar's text rather than from arithmetic. */
function windowsAround(atMs: number): Around {
  const hour = Math.floor(atMs / 3_600_000);
  const held = known.get(hour);
  if (held !== undefined) return held;
  // Cut from the end: years of more than four digits are written longer.
  const iso = new Date(atMs).toISOString();
  const hourMs = Date.parse(iso.slice(0, -":00:00.000Z".length) + ":00:00.000Z");
  const dayMs = Date.parse(iso.slice(0, -"T00:00:00.000Z".length) + "T00:00:00.000Z");
  const monthMs = Date.parse(firstOfMonth(iso));
  const inNextMonth = new Date(monthMs + 32 * 86_400_000).toISOString();
  const around: Around = [
    ["hourly", hourMs, hourMs + 3_600_000],
    ["daily", dayMs, dayMs + 86_400_000],
    ["monthly", monthMs, Date.parse(firstOfMonth(inNextMonth))],
  ];
  known.set(hour, around);
  return around;
}

function firstOfMonth(iso: string): string {
  return iso.slice(0, -"-01T00:00:00.000Z".length) + "-01T00:00:00.000Z";
}
