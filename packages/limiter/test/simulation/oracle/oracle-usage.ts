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

interface UsageEvent {
  readonly atMs: number;
  readonly tokens: Tokens;
  readonly requests: number;
}

/** Promise 8: every change of consumption, with the time at which it was written, and nothing else. Sums are made when asked for. */
export class OracleUsage {
  readonly #events = new Map<string, UsageEvent[]>();

  record(bucketKey: string, atMs: number, tokens: Tokens, requests: number): void {
    const events = this.#events.get(bucketKey);
    const event = { atMs, tokens, requests };
    if (events === undefined) this.#events.set(bucketKey, [event]);
    else events.push(event);
  }

  /** The windows of one bucket, by their start. */
  windows(bucketKey: string, length: WindowLength): Map<number, WindowSum> {
    const sums = new Map<number, WindowSum>();
    for (const { atMs, tokens, requests } of this.#events.get(bucketKey) ?? []) {
      const [startMs, endMs] = windowAround(length, atMs);
      const sum = sums.get(startMs) ?? { startMs, endMs, requests: 0, counters: new Map<string, number>() };
      sums.set(startMs, sum);
      sum.requests += requests;
      for (const name in tokens) sum.counters.set(name, (sum.counters.get(name) ?? 0) + tokens[name]!);
    }
    return sums;
  }
}

/** Start and end of the window that holds a time, from the calendar's text rather than from arithmetic. */
function windowAround(length: WindowLength, atMs: number): readonly [number, number] {
  const iso = new Date(atMs).toISOString();
  if (length === "hourly") {
    const startMs = Date.parse(`${iso.slice(0, 13)}:00:00.000Z`);
    return [startMs, startMs + 3_600_000];
  }
  if (length === "daily") {
    const startMs = Date.parse(`${iso.slice(0, 10)}T00:00:00.000Z`);
    return [startMs, startMs + 86_400_000];
  }
  const startMs = Date.parse(`${iso.slice(0, 7)}-01T00:00:00.000Z`);
  const inNextMonth = new Date(startMs + 32 * 86_400_000).toISOString();
  return [startMs, Date.parse(`${inNextMonth.slice(0, 7)}-01T00:00:00.000Z`)];
}
