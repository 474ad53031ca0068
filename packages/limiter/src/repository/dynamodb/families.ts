import type { Entity } from "../../core/entity.ts";
import type { MaybePromise } from "../port.ts";
import type { Clock } from "../system-clock.ts";

/** Whom a call of an entity also takes from. */
export interface Family {
  readonly parentId: string | undefined;
}

/** Families remembered at most. */
const MAX_REMEMBERED = 10_000;

/**
 * Remembers which parent each entity's calls cascade to, as long as configuration is remembered.
 */
export class Families {
  readonly #known = new Map<string, { readonly family: Family; readonly untilMs: number }>();
  readonly #read: (entityId: string) => MaybePromise<Entity | undefined>;
  readonly #clock: Clock;
  readonly #ttlMs: number;

  constructor(options: {
    readonly read: (entityId: string) => MaybePromise<Entity | undefined>;
    readonly clock: Clock;
    readonly ttlMs: number;
  }) {
    this.#read = options.read;
    this.#clock = options.clock;
    this.#ttlMs = options.ttlMs;
  }

  /** What is remembered, if it is still fresh. */
  known(entityId: string): Family | undefined {
    const held = this.#known.get(entityId);
    return held !== undefined && held.untilMs > this.#clock.now() ? held.family : undefined;
  }

  of(entityId: string): MaybePromise<Family> {
    return this.known(entityId) ?? this.#load(entityId);
  }

  /** Forgets an entity that this process has created or deleted. */
  forget(entityId: string): void {
    this.#known.delete(entityId);
  }

  async #load(entityId: string): Promise<Family> {
    const untilMs = this.#clock.now() + this.#ttlMs;
    const entity = await this.#read(entityId);
    const family = { parentId: entity?.cascade === true ? entity.parentId : undefined };
    this.#known.set(entityId, { family, untilMs });
    if (this.#known.size > MAX_REMEMBERED) this.#known.delete(this.#known.keys().next().value!);
    return family;
  }
}
