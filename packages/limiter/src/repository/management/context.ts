import { ulid, type AuditAction, type AuditEvent } from "../../core/audit.ts";
import { principal as checkPrincipal } from "../../core/identifiers.ts";
import type { PolicyCache } from "../policy-cache.ts";
import type { NamespaceData, Store } from "../store.ts";
import { wholeMs, type Clock, type Random } from "../system-clock.ts";

/** What the management functions of one namespace work with. */
export interface Context {
  readonly store: Store;
  readonly namespaceId: string;
  readonly data: NamespaceData;
  readonly policies: PolicyCache;
  readonly clock: Clock;
  readonly random: Random;
  readonly principal: string | undefined;
  readonly eventOrder: EventOrder;
}

/**
 * Orders the audit events that one context makes within one millisecond. All events of a namespace
 * that one repository makes come from one context; events that another repository or process makes
 * in the same millisecond are ordered at random.
 */
export class EventOrder {
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
export function auditEvent(
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
