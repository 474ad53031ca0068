import type { AuditEvent, AuditStore, Keyed, KeyPage } from "zae-limiter/backend";

/** Audit events, oldest first. Those whose retention is over are not shown. */
export class MapAudit implements AuditStore {
  readonly #events: AuditEvent[] = [];
  readonly #oldestMs: () => number;

  constructor(oldestMs: () => number) {
    this.#oldestMs = oldestMs;
  }

  add(event: AuditEvent): void {
    this.#events.push(event);
  }

  erase(entityId: string): number {
    const kept = this.#events.filter((event) => event.entityId !== entityId);
    const erased = this.#events.length - kept.length;
    this.#events.splice(0, Infinity, ...kept);
    return erased;
  }

  events(entityId: string, { limit, after }: KeyPage): Keyed<AuditEvent> {
    const oldestMs = this.#oldestMs();
    const rest = this.#events
      .filter((event) => event.entityId === entityId && event.timestamp.getTime() >= oldestMs)
      .filter(({ eventId }) => after === undefined || eventId < after)
      .sort((left, right) => (left.eventId < right.eventId ? 1 : -1));
    const items = rest.slice(0, limit).map((event) => Object.freeze(structuredClone(event)));
    return { items, next: rest.length > limit ? items.at(-1)?.eventId : undefined };
  }
}
