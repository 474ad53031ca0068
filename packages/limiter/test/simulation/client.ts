import { RateLimiter, type Clock, type Repository } from "zae-limiter";
import { faultyRepository } from "zae-limiter/testing";
import type { FaultChoice } from "./steps.ts";
import type { LimitSpec } from "../oracle/terms.ts";

/** What a simulation runs on. */
export interface Backend {
  readonly name: string;
  /**
   * Whether each client opens the store for itself, as a process does, with a clock of its own;
   * otherwise all share one repository. Separate clients need `configCacheTtlMs: 0`: the oracle
   * expects a change of configuration to be seen by the next call.
   */
  readonly separate: boolean;
  /**
   * Allows what a store of many processes does differently, although it grants the same. A take
   * need not move the stamp of its bucket, so only the current balance can be compared, and clocks
   * have to agree and not go back. A call that one bucket refuses may have taken from another
   * before and given back, which leaves that one under its new limits. @default false
   */
  readonly loose?: boolean;
  /** When usage is compared: counting it may take long. @default "after every step" */
  readonly comparesUsage?: "after every step" | "at the end";
  /** Makes an empty store for one run. */
  begin(): Run | Promise<Run>;
}

/** The store of one run. */
export interface Run {
  open(clock: Clock): Repository | Promise<Repository>;
  /** Removes what the run left behind, after every repository was closed. */
  end?(): void | Promise<void>;
}

/** A clock that is off by a fixed time. */
export class SkewedClock implements Clock {
  skewMs = 0;
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  now(): number {
    return this.#clock.now() + this.skewMs;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return this.#clock.sleep(ms, signal);
  }
}

const FAULTY: ReadonlySet<string> = new Set(["consume", "charge", "settle", "giveBack"]);

/** A process, or what stands for one: a limiter over a store that fails as planned. */
export class Client {
  readonly index: number;
  readonly clock: SkewedClock;
  readonly skewMs: number;
  readonly repository: Repository;
  readonly limiter: RateLimiter;
  /** See `Backend`. */
  readonly loose: boolean;
  /** What happens to the next operations, in order. */
  faults: readonly FaultChoice[] = [];
  /** Ends of leases that could not be written and had no caller to report to. */
  failedEnds = 0;

  constructor(options: {
    readonly index: number;
    readonly skewMs: number;
    readonly clock: SkewedClock;
    readonly repository: Repository;
    readonly loose: boolean;
    readonly defaults: readonly LimitSpec[] | undefined;
  }) {
    this.loose = options.loose;
    this.index = options.index;
    this.skewMs = options.skewMs;
    this.clock = options.clock;
    this.repository = options.repository;
    this.limiter = new RateLimiter({
      ...(options.defaults !== undefined && { defaults: options.defaults }),
      repository: faultyRepository(options.repository, (operation) =>
        FAULTY.has(operation) ? this.#nextFault() : undefined,
      ),
      onSettlementFailed: () => {
        this.failedEnds += 1;
      },
    });
  }

  /** The client's time. A shared clock shows the time of the client that acts. */
  now(): number {
    this.clock.skewMs = this.skewMs;
    return this.clock.now();
  }

  #nextFault(): FaultChoice {
    const [fault, ...rest] = this.faults;
    this.faults = rest;
    return fault;
  }
}
