import { RateLimiter, type AcquireRequest, type Amounts, type Repository } from "zae-limiter";
import type { Ledger } from "../ledger/ledger.ts";
import type { MetricEmitter } from "./artillery.ts";
import { emitCall, MANAGEMENT_CALLS, toKind, type ManagementCall } from "./metrics.ts";
import { buildUnknownNameError } from "./nearest.ts";
import { OpenLease, type CallTimer, type Grant, type SessionLease } from "./open-lease.ts";

/** What a session needs. */
export interface SessionOptions {
  /** Where limits and balances are. */
  readonly repository: Repository;
  /** Where events are reported: the second argument of Artillery's scenarios. */
  readonly emitter: MetricEmitter;
  /** The limiter that is loaded. @default a new one on the repository */
  readonly limiter?: RateLimiter;
  /** Where grants and settlements are noted for `verifyLedger`. @default nowhere */
  readonly ledger?: Ledger | undefined;
}

/** One call of a user. */
export interface SessionCall extends AcquireRequest {
  /** What the call is counted under, beside the totals. @default only the totals */
  readonly name?: string;
  /** The real cost of the call's own resource, settled after the work. @default as taken */
  readonly settle?: Amounts;
}

/** The calls whose effect on limits the ledger notes. */
const CHANGES = /^(?:set|delete|update|create)/;

/**
 * What users load a limiter with: every call is an event with its count and its latency. A refusal
 * is an outcome and not a failure; an error is reported under its code, and thrown.
 *
 * @example
 * const session = new RateLimiterSession({ repository, emitter });
 * const call = { entityId: "key-1", resource: "gpt-4", consume: { rpm: 1 }, name: "chat" };
 * await session.acquire(call, (lease) => lease.settle({ tpm: 1_200 }));
 */
export class RateLimiterSession {
  /** The repository, for what is not to be measured. */
  readonly repository: Repository;
  readonly #limiter: RateLimiter;
  readonly #emitter: MetricEmitter;
  readonly #ledger: Ledger | undefined;
  readonly #reported = new WeakSet();

  constructor({ repository, emitter, limiter, ledger }: SessionOptions) {
    this.repository = repository;
    this.#limiter = limiter ?? new RateLimiter({ repository });
    this.#emitter = emitter;
    this.#ledger = ledger;
  }

  /** Takes tokens, runs the work and settles. Returns undefined if a limit refuses. */
  async acquire<T>(
    call: SessionCall,
    work?: (lease: SessionLease) => T | PromiseLike<T>,
  ): Promise<T | undefined> {
    this.#ledger?.enter();
    try {
      return await this.#acquire(call, work);
    } finally {
      this.#ledger?.leave();
    }
  }

  /** Whole tokens left of every limit. */
  available(entityId: string, resource: string, name?: string): Promise<Record<string, number>> {
    return this.#time("available", () => this.#limiter.available(entityId, resource), name);
  }

  /**
   * Makes a management call of the repository, which is counted under its name in snake case.
   * @example await session.manage("setLimits", "key-1", [Limit.perMinute("rpm", 60)]);
   */
  async manage<Call extends ManagementCall>(
    call: Call,
    ...values: Parameters<Repository[Call]>
  ): Promise<Awaited<ReturnType<Repository[Call]>>> {
    if (!MANAGEMENT_CALLS.includes(call))
      throw buildUnknownNameError("call", call, MANAGEMENT_CALLS);
    this.#ledger?.enter();
    const sent = this.#ledger?.now() ?? 0;
    const method = this.repository[call] as (
      ...given: Parameters<Repository[Call]>
    ) => ReturnType<Repository[Call]>;
    try {
      return await this.#time(toKind(call), async () => method.apply(this.repository, values));
    } finally {
      if (CHANGES.test(call)) this.#ledger?.noteChange(call, sent);
      this.#ledger?.leave();
    }
  }

  /** Reports an error under its code, once. */
  reportError(error: unknown): void {
    if (typeof error === "object" && error !== null) {
      if (this.#reported.has(error)) return;
      this.#reported.add(error);
    }
    const { code, name } = (error ?? {}) as { readonly code?: unknown; readonly name?: unknown };
    this.#emitter.emit("error", String(code ?? name ?? error));
  }

  async #acquire<T>(
    { name, settle, ...request }: SessionCall,
    work: ((lease: SessionLease) => T | PromiseLike<T>) | undefined,
  ): Promise<T | undefined> {
    const timer: CallTimer = {
      take: (attempt) => this.#take(attempt, request.entityId, name),
      time: (kind, write) => this.#time(kind, write, name),
    };
    const grant = await timer.take(async () => {
      const verdict = await this.#limiter.tryAcquire(request);
      return verdict.granted ? verdict.lease : undefined;
    });
    if (grant === undefined) return undefined;
    const lease = new OpenLease(grant.value, timer, this.#ledger);
    await lease.noteTake({ ...request.also, [request.resource]: request.consume }, grant.sent);
    let result: T | undefined;
    try {
      result = await work?.(lease);
      if (settle !== undefined) lease.settle(settle);
    } catch (error) {
      lease.giveBack();
      // The error of the work is the one to throw; the other one has been reported.
      await lease.finish().catch(() => {});
      throw error;
    }
    await lease.finish();
    return result;
  }

  async #take<T>(
    attempt: () => Promise<T | undefined>,
    entityId: string,
    name: string | undefined,
  ): Promise<Grant<T> | undefined> {
    const sent = this.#ledger?.now() ?? 0;
    try {
      const value = await this.#time("acquire", attempt, name);
      return value === undefined ? undefined : { value, sent };
    } catch (error) {
      this.#ledger?.noteDoubt(entityId);
      throw error;
    }
  }

  /** Counts a call; an acquire without a value was refused by a limit. */
  async #time<T>(kind: string, work: () => Promise<T>, name?: string): Promise<T> {
    const startedMs = performance.now();
    try {
      const value = await work();
      const tookMs = performance.now() - startedMs;
      const isRefused = kind === "acquire" && value === undefined;
      emitCall(this.#emitter, { kind: isRefused ? "rate_limited" : kind, tookMs, name });
      return value;
    } catch (error) {
      this.reportError(error);
      throw error;
    }
  }
}
