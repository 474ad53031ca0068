import { ulid, type AuditAction, type AuditEvent } from "../../core/audit.ts";
import { principal as checkPrincipal } from "../../core/identifiers.ts";
import type { PolicyCache } from "../policy-cache.ts";
import type { NamespaceData, Store } from "../store.ts";
import type { Clock, Random } from "../system-clock.ts";

/** What the management functions of one namespace work with. */
export interface Context {
  readonly store: Store;
  readonly namespaceId: string;
  readonly data: NamespaceData;
  readonly policies: PolicyCache;
  readonly clock: Clock;
  readonly random: Random;
  readonly principal: string | undefined;
}

/** The time in whole milliseconds: buckets count nothing finer. */
export function nowMs(context: { readonly clock: Clock }): number {
  return Math.floor(context.clock.now());
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
  const timeMs = nowMs(context);
  const { entityId, action, resource, details = {} } = event;
  const principal =
    event.principal === undefined ? context.principal : checkPrincipal(event.principal);
  return Object.freeze({
    eventId: ulid(timeMs, nextSequence(timeMs), context.random),
    timestamp: new Date(timeMs),
    entityId,
    action,
    principal,
    resource,
    details: Object.freeze(details),
  });
}

let lastTimeMs = 0;
let sequence = 0;

/** Orders the events of one millisecond. */
function nextSequence(timeMs: number): number {
  sequence = timeMs === lastTimeMs ? sequence + 1 : 0;
  lastTimeMs = timeMs;
  return sequence;
}
