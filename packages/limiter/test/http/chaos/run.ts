/*
 * Rounds of chaos against one adapter, and what must hold after each: every lease that was granted
 * has ended once, for every handler that ran; balances match a ledger that is kept here and not by
 * the library; responses that a calm client has read are completed, those that a handler cut off
 * are not; and no connection is left. All rounds share servers and limiter, so that leaks add up in
 * the heap.
 */
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { ServerHttp2Session } from "node:http2";
import type { AddressInfo, Server } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { Limit, RateLimiter } from "zae-limiter";
import { CHANNELS, type AcquireMessage, type EndMessage } from "zae-limiter/diagnostics";
import type { HttpLimitOptions } from "zae-limiter/http";
import { MemoryRepository } from "zae-limiter/memory";
import { behave, withoutWriting, type Answer, type RawResponse } from "./behavior.ts";
import { talk } from "./clients.ts";
import { isCut, planRound, type ConnectionPlan, type Protocol, type RequestPlan } from "./plan.ts";
import { ADAPTERS, type Handling } from "./servers.ts";

/** The outcome of a request, as its handler and `settle` saw it. */
interface Entry {
  readonly plan: RequestPlan;
  hasRun: boolean;
  /** One entry for each end: whether the request was completed. */
  readonly ends: boolean[];
}

/** More than a run ever takes. */
const RICH = 1e9;
const POOR = 6;

/** In a run of ten minutes not a whole token flows back. */
const REFILL = { refillAmount: 1, refillPeriodSeconds: 1_000_000 };

const WAIT_UP_TO_MS = 10;

/** How long the ends of a round may take once its clients have left, even on a busy machine. */
const DRAIN_MS = 5000;

const PRINTING = { error: console.error, info: console.info };

/** Hono's server replaces them with lighter classes. */
const WEB_CLASSES = { Request, Response };

export class Chaos {
  readonly totals = { rounds: 0, requests: 0, granted: 0, ended: 0, completed: 0, refused: 0 };
  readonly #repository = new MemoryRepository();
  readonly #limiter = new RateLimiter({ repository: this.#repository });
  readonly #servers = new Map<Protocol, Server>();
  readonly #sessions = new Set<ServerHttp2Session>();
  #entries: Entry[] = [];
  #spent = 0;
  #endRound!: () => void;
  #roundEnded!: Promise<void>;

  static async start(adapter: string): Promise<Chaos> {
    const chaos = new Chaos();
    const start = ADAPTERS[adapter];
    if (start === undefined) throw new Error(`There is no adapter ${adapter}.`);
    for (const [entityId, capacity] of Object.entries({ rich: RICH, poor: POOR }))
      await chaos.#repository.setLimits(entityId, [
        Limit.custom({ name: "tokens", capacity, ...REFILL }),
      ]);
    // Servers print what handlers throw.
    console.error = console.info = () => {};
    subscribe(ASYNC_END, chaos.#onAcquired);
    subscribe(CHANNELS.end, chaos.#onEnded);
    const handle = (plan: RequestPlan, raw: RawResponse): Promise<Answer> => {
      chaos.#entries[plan.id]!.hasRun = true;
      return behave(plan, raw, chaos.#roundEnded);
    };
    const handling: Handling = {
      options: (urlOf) => chaos.#options(urlOf),
      handle: (url, raw) => handle(chaos.#getEntry(url).plan, raw),
      handleWithoutWriting: (url, raw) => handle(withoutWriting(chaos.#getEntry(url).plan), raw),
    };
    for (const [protocol, server] of Object.entries(await start(handling))) {
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      chaos.#servers.set(protocol as Protocol, server);
      server.on("session", (session: ServerHttp2Session) => {
        chaos.#sessions.add(session);
        session.on("close", () => chaos.#sessions.delete(session));
      });
    }
    return chaos;
  }

  /** Runs the round of a seed. Returns the violations. */
  async round(seed: number): Promise<readonly string[]> {
    const plans = planRound(seed, [...this.#servers.keys()]);
    this.#entries = plans
      .flatMap(({ requests }) => requests)
      .map((plan) => ({ plan, hasRun: false, ends: [] }));
    this.#roundEnded = new Promise((resolve) => (this.#endRound = resolve));
    const answers = await Promise.all(plans.map((plan) => talk(this.#port(plan.protocol), plan)));
    this.#endRound();
    this.totals.rounds += 1;
    this.totals.requests += this.#entries.length;
    await until(() => this.#isDrained("http1"));
    // After GOAWAY and a reset without an error, Node's server no longer reads from a connection,
    // and never closes it if a stream still has something to send.
    await until(() => {
      for (const session of this.#sessions) session.destroy();
      return this.#isDrained("http2");
    });
    const problems = plans.flatMap((plan, index) => this.#listProblems(plan, answers[index]!));
    return [...problems, ...(await this.#listAllProblems())];
  }

  async stop(): Promise<void> {
    Object.assign(console, PRINTING);
    Object.assign(globalThis, WEB_CLASSES);
    unsubscribe(ASYNC_END, this.#onAcquired);
    unsubscribe(CHANNELS.end, this.#onEnded);
    for (const server of this.#servers.values()) server.close();
    await this.#limiter.close();
  }

  #options<Q>(urlOf: (request: Q) => string): HttpLimitOptions<Q> {
    return {
      limiter: this.#limiter,
      resource: "web",
      entity: (request) => this.#getEntry(urlOf(request)).plan.entityId,
      consume: (request) => ({ tokens: this.#getEntry(urlOf(request)).plan.cost }),
      waitUpToMs: WAIT_UP_TO_MS,
      // The charge is kept, doubled or given back.
      settle: ({ request, completed }) => {
        const { plan, ends } = this.#getEntry(urlOf(request));
        ends.push(completed);
        const kept = plan.entityId === "poor" || !completed ? 0 : plan.cost;
        const factor = plan.id % 2 === 0 ? 1 : 2;
        this.#spent += kept * factor;
        if (kept === 0) return "give-back";
        return factor === 1 ? undefined : { tokens: kept * factor };
      },
    };
  }

  #getEntry(url: string): Entry {
    return this.#entries[Number(url.split("/")[1])]!;
  }

  #port(protocol: Protocol): number {
    return (this.#servers.get(protocol)!.address() as AddressInfo).port;
  }

  readonly #onAcquired = (message: unknown): void => {
    const { outcome } = message as AcquireMessage;
    if (outcome === "granted") this.totals.granted += 1;
    if (outcome === "refused") this.totals.refused += 1;
  };

  readonly #onEnded = (message: unknown): void => {
    // Without an outcome no handler got the lease.
    if ((message as EndMessage).acquire.outcome !== undefined) this.totals.ended += 1;
  };

  /** A connection that is still open may bring another request. */
  async #isDrained(protocol: Protocol): Promise<boolean> {
    const { granted, ended } = this.totals;
    return granted === ended && (await this.#connections(protocol)) === 0;
  }

  async #connections(protocol: Protocol): Promise<number> {
    const server = this.#servers.get(protocol);
    if (server === undefined) return 0;
    return new Promise((resolve) => server.getConnections((_error, count) => resolve(count)));
  }

  #listProblems(plan: ConnectionPlan, answers: number): readonly string[] {
    const problems: string[] = [];
    if (plan.ends === "calmly" && answers !== plan.requests.length)
      problems.push(`${answers} of ${plan.requests.length} answers were read`);
    for (const { id, method, behavior } of plan.requests) {
      const { ends, hasRun } = this.#entries[id]!;
      this.totals.completed += ends.filter(Boolean).length;
      if (ends.length > 1 || (hasRun && ends.length === 0))
        problems.push(`request ${id} ended ${ends.length} times`);
      if (!hasRun) continue;
      if (plan.ends === "calmly" && ends[0] === false)
        problems.push(`request ${id} was read and is not completed`);
      // The response to a HEAD may have been sent completely before.
      if (isCut(behavior) && method !== "HEAD" && ends[0] === true)
        problems.push(`request ${id} was cut off and is completed`);
    }
    return problems.length === 0 ? [] : [`${problems.join(", ")}: ${JSON.stringify(plan)}`];
  }

  async #listAllProblems(): Promise<readonly string[]> {
    const { granted, ended } = this.totals;
    const problems: string[] = [];
    if (granted !== ended) problems.push(`${granted} leases were granted, and ${ended} ended`);
    for (const protocol of this.#servers.keys()) {
      const connections = await this.#connections(protocol);
      if (connections !== 0) problems.push(`${connections} connections of ${protocol} are left`);
    }
    for (const [entityId, expected] of Object.entries({ rich: RICH - this.#spent, poor: POOR })) {
      const { tokens } = await this.#limiter.available(entityId, "web");
      if (tokens !== expected) problems.push(`${entityId} has ${tokens} instead of ${expected}`);
    }
    return problems;
  }
}

/** Waits until a condition holds, or until the time is up. */
async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  const deadlineMs = performance.now() + DRAIN_MS;
  while (!(await holds()) && performance.now() < deadlineMs) await sleep(1);
}

const ASYNC_END = `tracing:${CHANNELS.acquire}:asyncEnd`;

/** The heap in use, in bytes, once everything that can be was collected. */
export function measureHeap(): number {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  collect();
  collect();
  return process.memoryUsage().heapUsed;
}
