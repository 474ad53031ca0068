import type { AuditEvent } from "../../core/audit.ts";
import { DAY_MS } from "../../core/usage.ts";
import type { AuditStore, Keyed, KeyPage } from "../store.ts";

/**
 * How many lists each new event checks for expired events: enough to keep up, and too few to be
 * noticeable.
 */
const SWEPT_PER_EVENT = 2;

/** Audit events by entity, oldest first. */
export class MemoryAudit implements AuditStore {
  readonly #lists = new Map<string, AuditEvent[]>();
  readonly #nowMs: () => number;
  readonly #retentionDays: () => number;
  #sweep: Iterator<string> = [].values();

  constructor(nowMs: () => number, retentionDays: () => number) {
    this.#nowMs = nowMs;
    this.#retentionDays = retentionDays;
  }

  add(event: AuditEvent): void {
    const list = this.#lists.get(event.entityId);
    if (list === undefined) this.#lists.set(event.entityId, [event]);
    else list.push(event);
    for (let count = 0; count < SWEPT_PER_EVENT; count += 1) this.#sweepNext();
  }

  events(entityId: string, { limit, after }: KeyPage): Keyed<AuditEvent> {
    const newestFirst = this.#dropExpired(entityId).toSorted((left, right) =>
      left.eventId < right.eventId ? 1 : -1,
    );
    const rest =
      after === undefined ? newestFirst : newestFirst.filter((event) => event.eventId < after);
    // A Date cannot be frozen, so every caller gets its own.
    const items = rest
      .slice(0, limit)
      .map((event) => Object.freeze({ ...event, timestamp: new Date(event.timestamp) }));
    return { items, next: rest.length > limit ? items.at(-1)?.eventId : undefined };
  }

  erase(entityId: string): number {
    const count = this.#lists.get(entityId)?.length ?? 0;
    this.#lists.delete(entityId);
    return count;
  }

  clear(): number {
    const count = [...this.#lists.values()].reduce((sum, list) => sum + list.length, 0);
    this.#lists.clear();
    return count;
  }

  #dropExpired(entityId: string): readonly AuditEvent[] {
    const oldestMs = this.#oldestMs();
    const list = this.#lists.get(entityId) ?? [];
    const kept = list.filter((event) => event.timestamp.getTime() >= oldestMs);
    if (kept.length === 0) this.#lists.delete(entityId);
    else if (kept.length < list.length) this.#lists.set(entityId, kept);
    return kept;
  }

  #sweepNext(): void {
    const { value, done } = this.#sweep.next();
    if (done) this.#sweep = this.#lists.keys();
    else if (this.#isFirstExpired(value)) this.#dropExpired(value);
  }

  /** Looks at the oldest event only: a list may be long, and is swept with each of its events. */
  #isFirstExpired(entityId: string): boolean {
    const first = this.#lists.get(entityId)?.[0];
    return first !== undefined && first.timestamp.getTime() < this.#oldestMs();
  }

  #oldestMs(): number {
    return this.#nowMs() - this.#retentionDays() * DAY_MS;
  }
}
