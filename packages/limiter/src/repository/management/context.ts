import { ulid, type AuditAction, type AuditEvent } from "../../core/audit.ts";
import { principal as checkPrincipal } from "../../core/identifiers.ts";
import { PolicyCache } from "../policy-cache.ts";
import type { RepositoryOptions } from "../repository.ts";
import { cacheTtlMs } from "../repository-options.ts";
import type { NamespaceData, Store } from "../store.ts";
import { systemClock, systemRandom, wholeMs, type Clock, type Random } from "../system-clock.ts";

/** One namespace of a store, and the options its repository was opened with. */
export interface Scope {
  readonly store: Store;
  readonly namespaceName: string;
  readonly namespaceId: string;
  readonly options: RepositoryOptions;
  /** Undefined where a store cannot disappear. */
  readonly reopening?: Reopening;
}

/** How a namespace is found again in a store that disappeared under an open repository. */
export interface Reopening {
  /** How often the store was found missing, which the store counts; ids may differ afterwards. */
  readonly losses: { readonly count: number };
  /** Returns the id that a namespace has now; rejects while there is none. */
  readonly find: (namespaceName: string) => Promise<string>;
}

/** What a repository shares with those that are made from it with `namespace()`. */
export class Shared {
  /**
   * The contexts by namespace. Repositories of one namespace share theirs, so that each sees what
   * the others evict from the cache.
   */
  readonly contexts = new Map<string, Context>();
  /** The error that calls throw after `close`; undefined before. */
  closedReason: Error | undefined;
  #closing: AbortController | undefined;

  /**
   * Aborts with `close`. It is made when it is first asked for: Cloudflare Workers allow none
   * outside of requests, and bind each to the request that made it.
   */
  get closed(): AbortSignal {
    this.#closing ??= new AbortController();
    if (this.closedReason !== undefined) this.#closing.abort(this.closedReason);
    return this.#closing.signal;
  }

  close(reason: Error): void {
    this.closedReason ??= reason;
    this.#closing?.abort(this.closedReason);
  }
}

/** What the management functions of one namespace work with. */
export interface Context {
  readonly store: Store;
  readonly namespaceName: string;
  readonly namespaceId: string;
  readonly data: NamespaceData;
  readonly policies: PolicyCache;
  readonly clock: Clock;
  readonly random: Random;
  readonly principal: string | undefined;
  readonly eventOrder: EventOrder;
}

/** The context of one repository. It changes when the store is lost and created again. */
export class CurrentContext {
  readonly #shared: Shared;
  #scope: Scope;
  #context: Context;
  /** How often the store had been lost when the namespace was found. */
  #losses: number | undefined;
  #finding: Promise<void> | undefined;

  constructor(scope: Scope, shared: Shared) {
    this.#shared = shared;
    this.#scope = scope;
    this.#context = getContext(scope, shared);
    this.#losses = scope.reopening?.losses.count;
  }

  get scope(): Scope {
    return this.#scope;
  }

  get context(): Context {
    return this.#context;
  }

  /** Finds the namespace again if the store was lost since; returns undefined if it was not. */
  findAgain(): Promise<void> | undefined {
    const { reopening } = this.#scope;
    if (reopening === undefined || reopening.losses.count === this.#losses) return undefined;
    this.#finding ??= this.#find(reopening).finally(() => (this.#finding = undefined));
    return this.#finding;
  }

  async #find({ losses: { count }, find }: Reopening): Promise<void> {
    const namespaceId = await find(this.#scope.namespaceName);
    this.#scope = { ...this.#scope, namespaceId };
    this.#context = getContext(this.#scope, this.#shared);
    this.#losses = count;
  }
}

/** The context of a namespace, which repositories of that namespace share. */
function getContext(
  { store, namespaceName, namespaceId, options }: Scope,
  { contexts }: Shared,
): Context {
  const shared = contexts.get(namespaceId);
  if (shared !== undefined) return shared;
  const clock = options.clock ?? systemClock;
  const policies: PolicyCache = new PolicyCache({
    read: (keys) => data.limits.read(keys),
    clock,
    ttlMs: cacheTtlMs(options),
  });
  const data = store.open(namespaceId, policies);
  const principal = options.principal === undefined ? undefined : checkPrincipal(options.principal);
  const context = {
    store,
    namespaceName,
    namespaceId,
    data,
    policies,
    clock,
    random: options.random ?? systemRandom,
    principal,
    eventOrder: getEventOrder(clock),
  };
  contexts.set(namespaceId, context);
  return context;
}

/**
 * The order of audit events within the milliseconds of one clock. Repositories that share a clock
 * share the order too: a process may open several on one store, and their events are listed in the
 * order in which they were made. Events of other processes that fall into the same millisecond are
 * ordered at random.
 */
function getEventOrder(clock: Clock): EventOrder {
  const held = EVENT_ORDER_MEMO.get(clock) ?? new EventOrder();
  EVENT_ORDER_MEMO.set(clock, held);
  return held;
}

const EVENT_ORDER_MEMO = new WeakMap<Clock, EventOrder>();

class EventOrder {
  #lastTimeMs = 0;
  #sequence = 0;

  /** The position of the next event among those of its millisecond. */
  next(timeMs: number): number {
    this.#sequence = timeMs === this.#lastTimeMs ? this.#sequence + 1 : 0;
    this.#lastTimeMs = timeMs;
    return this.#sequence;
  }
}

/** Describes a change for the audit trail. */
export function buildAuditEvent(
  context: Context,
  event: {
    readonly entityId: string;
    readonly action: AuditAction;
    readonly principal?: string | undefined;
    readonly resource?: string;
    readonly details?: Readonly<Record<string, unknown>>;
  },
): AuditEvent {
  const timeMs = wholeMs(context.clock);
  const { entityId, action, resource, details = {} } = event;
  const principal =
    event.principal === undefined ? context.principal : checkPrincipal(event.principal);
  return Object.freeze({
    eventId: ulid(timeMs, context.eventOrder.next(timeMs), context.random),
    timestamp: new Date(timeMs),
    entityId,
    action,
    principal,
    resource,
    details: Object.freeze(details),
  });
}
