import type { Clock } from "../../src/repository/system-clock.ts";

interface Sleeper {
  readonly untilMs: number;
  readonly clock: ProcessClock;
  wake(): void;
}

/** The time that really passes, which no process knows exactly. */
export class SimulatedTime {
  nowMs: number;
  #sleepers: Sleeper[] = [];

  constructor(startMs: number) {
    this.nowMs = startMs;
  }

  get isAnybodyAsleep(): boolean {
    return this.#sleepers.length > 0;
  }

  /** Moves on, and wakes every sleeper whose time has come. */
  advance(ms: number): void {
    this.nowMs += ms;
    const awake = this.#sleepers.filter(({ untilMs }) => untilMs <= this.nowMs);
    this.#sleepers = this.#sleepers.filter(({ untilMs }) => untilMs > this.nowMs);
    for (const sleeper of awake.sort((left, right) => left.untilMs - right.untilMs)) sleeper.wake();
  }

  /** How long until the first sleeper wakes. */
  untilFirstWakesMs(): number {
    return Math.max(0, Math.min(...this.#sleepers.map(({ untilMs }) => untilMs)) - this.nowMs);
  }

  sleep(clock: ProcessClock, ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.#sleepers.push({ untilMs: this.nowMs + Math.ceil(ms), clock, wake: resolve });
    });
  }

  /** A dead process does not wake up. */
  forget(clock: ProcessClock): void {
    this.#sleepers = this.#sleepers.filter((sleeper) => sleeper.clock !== clock);
  }
}

/**
 * The clock of one process: it runs as fast as time does, but shows something else, and may be set
 * back.
 */
export class ProcessClock implements Clock {
  readonly #time: SimulatedTime;
  skewMs: number;
  /** The lowest skew it ever had. */
  lowestSkewMs: number;

  constructor(time: SimulatedTime, skewMs: number) {
    this.#time = time;
    this.skewMs = skewMs;
    this.lowestSkewMs = skewMs;
  }

  now(): number {
    return this.#time.nowMs + this.skewMs;
  }

  sleep(ms: number): Promise<void> {
    return this.#time.sleep(this, ms);
  }

  stepBack(ms: number): void {
    this.skewMs -= ms;
    this.lowestSkewMs = Math.min(this.lowestSkewMs, this.skewMs);
  }
}

/** The clock of a process whose pauses take no time: there is none that it could wait for. */
export class LoneClock extends ProcessClock {
  override async sleep(): Promise<void> {}
}
