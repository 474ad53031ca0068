/*
 * Random requests of one client to a middleware with its own store, with ours in memory and with
 * ours on SQLite. Time passes in parts of a window, and in whole ones.
 */
import * as fc from "fast-check";
import { RateLimiter, type Repository } from "zae-limiter";
import { MemoryRepository } from "zae-limiter/memory";
import { SqliteRepository } from "zae-limiter/sqlite";
import { ManualClock } from "zae-limiter/testing";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import {
  startExpress7,
  startExpress8,
  startFastify,
  startHono,
  startNest,
  startWebSocket,
  type Look,
  type Mode,
  type PeerOptions,
  type PeerServer,
  type Respond,
} from "../support/peer-servers.ts";
import { seedsFromEnvironment } from "../support/seeded/seeds.ts";
import { temporaryFile } from "../support/temporary-file.ts";

const { count: RUNS } = seedsFromEnvironment({ usual: 10 });
const WINDOW_MS = 60_000;
const LIMIT = 3;
/** Our stores give nothing back after ten minutes. */
const LONGEST_REQUEST_MS = 8 * WINDOW_MS;

type Step =
  | { readonly name: "begin" }
  | { readonly name: "end"; readonly which: number; readonly status: number }
  | { readonly name: "pass"; readonly ms: number };

const STEPS = fc.array(
  fc.oneof(
    { weight: 8, arbitrary: fc.constant({ name: "begin" as const }) },
    {
      weight: 6,
      arbitrary: fc.record({
        name: fc.constant("end" as const),
        which: fc.nat(9),
        status: fc.constantFrom(200, 401, 500),
      }),
    },
    { weight: 2, arbitrary: passing(1, WINDOW_MS / 2) },
    { weight: 1, arbitrary: passing(WINDOW_MS, 2 * WINDOW_MS) },
  ),
  { maxLength: 60, size: "max" },
);

function passing(least: number, most: number): fc.Arbitrary<Step> {
  return fc.integer({ min: least, max: most }).map((ms) => ({ name: "pass", ms }));
}

const DEFAULT_SUCCESS = (status: number): boolean => status < 400;

const MODES: readonly (readonly [string, Mode])[] = [
  ["everything counts", {}],
  ["skipFailedRequests", { skipFailedRequests: true }],
  ["skipSuccessfulRequests", { skipSuccessfulRequests: true }],
  ["both", { skipFailedRequests: true, skipSuccessfulRequests: true }],
  ["only 5xx failed", { skipFailedRequests: true, isSuccess: (status) => status < 500 }],
  ["only 401 failed", { skipSuccessfulRequests: true, isSuccess: (status) => status !== 401 }],
];

/** How a middleware behaves with any store. */
interface Peer {
  readonly start: (options: PeerOptions) => Promise<PeerServer>;
  /** The status by which it classifies a refused request; undefined if it does not. */
  readonly refusedStatus: number | undefined;
  /** Whether it gives nothing back after the reset time that a grant reported. */
  readonly keepsLate: boolean;
}

beforeEach(() => void vi.useFakeTimers({ toFake: ["Date"] }));
afterEach(() => void vi.useRealTimers());

describe.each<readonly [string, Peer, readonly (readonly [string, Mode])[]]>([
  ["express-rate-limit 7", { start: startExpress7, refusedStatus: 429, keepsLate: false }, MODES],
  ["express-rate-limit 8", { start: startExpress8, refusedStatus: 429, keepsLate: true }, MODES],
  ["hono-rate-limiter", { start: startHono, refusedStatus: 200, keepsLate: false }, MODES],
  [
    "hono-rate-limiter, messages",
    { start: startWebSocket, refusedStatus: undefined, keepsLate: false },
    MODES.filter(([, { isSuccess }]) => isSuccess === undefined),
  ],
  [
    "@fastify/rate-limit",
    { start: startFastify, refusedStatus: undefined, keepsLate: false },
    MODES.slice(0, 1),
  ],
  ...[0, WINDOW_MS].map(
    (blockMs) =>
      [
        `@nestjs/throttler, blockDuration ${blockMs}`,
        { start: startNest(blockMs), refusedStatus: undefined, keepsLate: false },
        MODES.slice(0, 1),
      ] as const,
  ),
])("%s", (_name, peer, modes) => {
  it.each(modes)(
    "%s: grants what its own store grants, and never more than the bucket",
    async (_mode, mode) => {
      const clock = new ManualClock();
      await using sqlite = await SqliteRepository.open(temporaryFile(), { clock });
      const start = (repository?: Repository): Promise<PeerServer> => {
        const limiter = repository && new RateLimiter({ repository });
        return peer.start({ limiter, mode, limit: LIMIT, windowMs: WINDOW_MS });
      };
      await using own = await start();
      await using memory = await start(new MemoryRepository({ clock }));
      await using file = await start(sqlite);
      let runs = 0;
      await fc.assert(
        fc.asyncProperty(STEPS, async (steps) => {
          const key = `client-${(runs += 1)}`;
          const ask: Ask = {
            look: () => Promise.all([own, memory, file].map((server) => server.look?.(key))),
            request: () => Promise.all([own, memory, file].map((server) => server.request(key))),
          };
          const compared = new Compared(peer, mode, clock);
          try {
            for (const step of steps) await compared.make(step, ask);
          } finally {
            await compared.endAll();
          }
        }),
        { numRuns: RUNS },
      );
    },
    600_000,
  );
});

type Responds = readonly (Respond | undefined)[];

/** Sends to all servers. */
interface Ask {
  look(): Promise<readonly (Look | undefined)[]>;
  request(): Promise<Responds>;
}

/** A request that at least one of the servers let through. */
interface Running {
  readonly responds: Responds;
  readonly begunMs: number;
}

/** The bucket as it must be, and what must be granted because of the window. */
class Compared {
  readonly #peer: Peer;
  readonly #mode: Mode;
  readonly #clock: ManualClock;
  #running: readonly Running[] = [];
  /** A token has `WINDOW_MS` parts, so that `LIMIT` parts refill in a millisecond. */
  #parts = LIMIT * WINDOW_MS;
  #windowMs = -Infinity;
  #lastMs = -Infinity;
  /** While this is set, the bucket was full when the window began. */
  #isAligned = true;

  constructor(peer: Peer, mode: Mode, clock: ManualClock) {
    this.#peer = peer;
    this.#mode = mode;
    this.#clock = clock;
  }

  async make(step: Step, ask: Ask): Promise<void> {
    if (step.name === "pass") return this.#pass(step.ms);
    if (step.name === "begin") return this.#begin(ask);
    const running = this.#running[step.which % this.#running.length];
    if (running !== undefined) await this.#end(running, step.status);
  }

  async endAll(): Promise<void> {
    for (const running of this.#running) await this.#end(running, 200);
  }

  async #begin(ask: Ask): Promise<void> {
    const nowMs = this.#clock.now();
    if (nowMs - this.#lastMs >= WINDOW_MS) {
      // A request that only one of them granted would be given back to that one only.
      if (!this.#isAligned) await this.endAll();
      this.#windowMs = nowMs;
      this.#isAligned = true;
    } else if (nowMs - this.#windowMs >= WINDOW_MS) this.#isAligned = false;
    this.#lastMs = nowMs;
    const [ownLook, look, lookOnFile] = await ask.look();
    const responds = await ask.request();
    const [own, ours, onFile] = responds.map((respond) => respond !== undefined);
    const isFree = this.#parts >= WINDOW_MS;
    expect(look?.isExceeded, "a look shows the decision").toBe(look && !ours);
    expect(lookOnFile, "SQLite shows what memory shows").toEqual(look);
    if (this.#isAligned && ownLook)
      expect(look!.remaining).toBeGreaterThanOrEqual(ownLook.remaining);
    expect(onFile, "SQLite decides as memory").toBe(ours);
    if (ours) expect(isFree, "a token was left").toBe(true);
    if (this.#isAligned && own) expect(ours, "its own store grants").toBe(true);
    if (!this.#leavesRefusals) {
      expect(ours, "what fits is granted").toBe(isFree);
      expect(look?.remaining).toBe(look && Math.floor(this.#parts / WINDOW_MS));
    }
    if (ours) this.#parts -= WINDOW_MS;
    if (ours || own) this.#running = [...this.#running, { responds, begunMs: nowMs }];
  }

  async #end(running: Running, status: number): Promise<void> {
    this.#running = this.#running.filter((each) => each !== running);
    await Promise.all(running.responds.map((respond) => respond?.(status)));
    const isLate = this.#clock.now() - running.begunMs >= WINDOW_MS;
    const isOurs = running.responds[1] !== undefined;
    if (isOurs && this.#isGivenBack(status) && !(isLate && this.#peer.keepsLate))
      this.#add(WINDOW_MS);
  }

  async #pass(ms: number): Promise<void> {
    await this.#clock.advance(ms);
    vi.setSystemTime(Date.now() + ms);
    this.#add(ms * LIMIT);
    const nowMs = this.#clock.now();
    for (const running of this.#running)
      if (nowMs - running.begunMs > LONGEST_REQUEST_MS) await this.#end(running, 200);
  }

  #add(parts: number): void {
    this.#parts = Math.min(LIMIT * WINDOW_MS, this.#parts + parts);
  }

  #isGivenBack(status: number): boolean {
    const { skipFailedRequests, skipSuccessfulRequests, isSuccess = DEFAULT_SUCCESS } = this.#mode;
    return (isSuccess(status) ? skipSuccessfulRequests : skipFailedRequests) ?? false;
  }

  /** Whether a decrement may be that of a request which was refused before. */
  get #leavesRefusals(): boolean {
    const { skipFailedRequests = false, skipSuccessfulRequests = false } = this.#mode;
    const { refusedStatus } = this.#peer;
    if (!skipFailedRequests && !skipSuccessfulRequests) return false;
    return refusedStatus === undefined || !this.#isGivenBack(refusedStatus);
  }
}
