import { BoundedMap } from "../core/bounded-map.ts";
import { DEFAULT_RESOURCE } from "../core/identifiers.ts";
import { knows } from "../core/bucket/decision.ts";
import {
  levelAt,
  resolvePolicy,
  type ConfigKey,
  type OnUnavailable,
  type Policy,
} from "../core/bucket/policy.ts";
import type { MaybePromise } from "./port.ts";
import type { CacheStats } from "./repository.ts";
import { NO_SETTINGS, type CachedPolicy, type PolicySource, type StoredConfig } from "./store.ts";
import type { Clock } from "./system-clock.ts";

/** Most slots: 10 000 take a few megabytes, and what is dropped is read again. */
const MAX_SLOTS = 10_000;

interface Slot {
  /** The limits of this level alone; `undefined` means that it has none. */
  readonly level: Policy | undefined;
  readonly readAtMs: number;
  /** At the system level only. */
  readonly onUnavailable: OnUnavailable | undefined;
}

const SYSTEM = "system";

/**
 * Caches what is stored at each of the four levels, for a limited time and within bounds.
 *
 * A slot is one level of one key. Four slots make a policy; the missing ones are read together.
 * Concurrent calls share the read of a slot, and no call waits for a slot that it does not need.
 * Writers in this process evict what they change. A read that began before an eviction does not
 * fill the slot afterwards.
 */
export class PolicyCache implements PolicySource {
  readonly #slots = new BoundedMap<string, Slot>(MAX_SLOTS);
  readonly #reads = new Map<string, Promise<Slot>>();
  readonly #read: (keys: readonly ConfigKey[]) => MaybePromise<readonly StoredConfig[]>;
  readonly #clock: Pick<Clock, "now">;
  readonly #ttlMs: number;
  #version = 0;
  #hits = 0;
  #misses = 0;
  /** The stored value as last seen, even if its slot has expired. */
  lastOnUnavailable: OnUnavailable | undefined;

  constructor(options: {
    readonly read: (keys: readonly ConfigKey[]) => MaybePromise<readonly StoredConfig[]>;
    readonly clock: Pick<Clock, "now">;
    readonly ttlMs: number;
  }) {
    this.#read = options.read;
    this.#clock = options.clock;
    this.#ttlMs = options.ttlMs;
  }

  get version(): number {
    return this.#version;
  }

  isUnchangedSince(version: number): boolean {
    if (version !== this.#version || this.#ttlMs === 0) return false;
    this.#hits += 1;
    return true;
  }

  getCached(entityId: string, resource: string, held?: CachedPolicy): CachedPolicy | undefined {
    const nowMs = this.#clock.now();
    if (held?.version === this.#version && held.fromMs <= nowMs && nowMs < held.untilMs) {
      this.#hits += 1;
      return held;
    }
    let inheriting: Policy[] | undefined;
    let [fromMs, untilMs] = [-Infinity, Infinity];
    for (const key of listConfigKeys(entityId, resource)) {
      const slot = this.#fresh(keyText(key), nowMs);
      if (slot === undefined) return undefined;
      fromMs = Math.max(fromMs, slot.readAtMs);
      untilMs = Math.min(untilMs, slot.readAtMs + this.#ttlMs);
      if (slot.level !== undefined) (inheriting ??= []).push(slot.level);
      if (slot.level?.inherits === false) break;
    }
    this.#hits += 1;
    const policy = inheriting && resolvePolicy(inheriting);
    return { policy, version: this.#version, fromMs, untilMs };
  }

  resolve(entityId: string, resource: string): MaybePromise<Policy | undefined> {
    const known = this.getCached(entityId, resource);
    if (known !== undefined) return known.policy;
    const levels = this.#readLevels(entityId, resource);
    return levels instanceof Promise ? levels.then(resolvePolicy) : resolvePolicy(levels);
  }

  levels(entityId: string, resource: string): MaybePromise<readonly (Policy | undefined)[]> {
    const nowMs = this.#clock.now();
    const slots = listConfigKeys(entityId, resource).map((key) => this.#fresh(keyText(key), nowMs));
    if (slots.includes(undefined)) return this.#readLevels(entityId, resource);
    this.#hits += 1;
    return slots.map((slot) => slot!.level);
  }

  /**
   * Whether some level has a limit of this name. It answers at once: true even from expired slots,
   * or when only a read could tell; false only from slots that have not expired.
   */
  knows(entityId: string, resource: string, limitName: string): boolean {
    const keys = listConfigKeys(entityId, resource);
    const held = keys.map((key) => this.#slots.get(keyText(key))?.level);
    if (knows(held, limitName)) return true;
    const levels = this.levels(entityId, resource);
    if (!(levels instanceof Promise)) return knows(levels, limitName);
    levels.catch(() => {});
    return true;
  }

  refresh(entityId: string, resource: string): MaybePromise<Policy | undefined> {
    for (const key of listConfigKeys(entityId, resource)) this.#forget(keyText(key));
    return this.resolve(entityId, resource);
  }

  /** Drops what a writer has just changed. */
  evict(key: ConfigKey): void {
    this.#forget(keyText(key));
  }

  /** Drops the slots of a deleted entity. */
  evictEntity(entityId: string): void {
    this.#version += 1;
    const prefix = keyText({ level: "entity", entityId, resource: "" });
    for (const text of [...this.#slots.keys(), ...this.#reads.keys()])
      if (text.startsWith(prefix)) this.#forget(text);
  }

  clear(): void {
    this.#version += 1;
    this.#slots.clear();
    this.#reads.clear();
  }

  stats(): CacheStats {
    return { hits: this.#hits, misses: this.#misses, size: this.#slots.size, ttlMs: this.#ttlMs };
  }

  /**
   * A slot that was read within the time to live. A slot that seems to come from the future is
   * stale, because the clock was set back since it was read.
   */
  #fresh(text: string, nowMs: number): Slot | undefined {
    const slot = this.#slots.get(text);
    return slot !== undefined && slot.readAtMs <= nowMs && nowMs < slot.readAtMs + this.#ttlMs
      ? slot
      : undefined;
  }

  #readLevels(entityId: string, resource: string): MaybePromise<readonly (Policy | undefined)[]> {
    this.#misses += 1;
    const nowMs = this.#clock.now();
    const keys = listConfigKeys(entityId, resource);
    const missing = keys.filter(
      (key) => this.#fresh(keyText(key), nowMs) === undefined && !this.#reads.has(keyText(key)),
    );
    const shared = keys.map(
      (key) => this.#reads.get(keyText(key)) ?? this.#slots.get(keyText(key)),
    );
    const read = missing.length === 0 ? [] : this.#readSlots(missing);
    if (!(read instanceof Promise) && !shared.some((slot) => slot instanceof Promise)) {
      return selectLevels(keys, missing, shared as readonly (Slot | undefined)[], read);
    }
    return Promise.all([Promise.all(shared), read]).then(([found, fresh]) =>
      selectLevels(keys, missing, found, fresh),
    );
  }

  #forget(text: string): void {
    this.#version += 1;
    this.#slots.delete(text);
    this.#reads.delete(text);
  }

  #readSlots(keys: readonly ConfigKey[]): MaybePromise<readonly Slot[]> {
    const startedMs = this.#clock.now();
    const answer = this.#read(keys);
    if (!(answer instanceof Promise)) {
      const slots = buildSlots(keys, answer, startedMs);
      keys.forEach((key, index) => this.#remember(keyText(key), slots[index]!));
      return slots;
    }
    const reading = answer.then((configs) => buildSlots(keys, configs, startedMs));
    keys.forEach((key, index) =>
      this.#awaitSlot(
        keyText(key),
        reading.then((slots) => slots[index]!),
      ),
    );
    return reading;
  }

  #awaitSlot(text: string, slot: Promise<Slot>): void {
    this.#reads.set(text, slot);
    const isCurrent = (): boolean => this.#reads.get(text) === slot && this.#reads.delete(text);
    slot.then(
      (value) => isCurrent() && this.#remember(text, value),
      // The calls that wait for the read get its error; the next call reads again.
      () => isCurrent(),
    );
  }

  #remember(text: string, slot: Slot): void {
    if (text === SYSTEM) this.lastOnUnavailable = slot.onUnavailable;
    if (this.#ttlMs === 0) return;
    this.#slots.set(text, slot);
  }
}

/** The keys of the four levels, strongest first. */
export function listConfigKeys(entityId: string, resource: string): readonly ConfigKey[] {
  return [
    { level: "entity", entityId, resource },
    { level: "entity", entityId, resource: DEFAULT_RESOURCE },
    { level: "resource", resource },
    { level: "system" },
  ];
}

/** Identifiers never contain '#', so the text is unambiguous. */
function keyText(key: ConfigKey): string {
  if (key.level === "system") return SYSTEM;
  return key.level === "resource"
    ? `resource#${key.resource}`
    : `entity#${key.entityId}#${key.resource}`;
}

function buildSlots(
  keys: readonly ConfigKey[],
  configs: readonly StoredConfig[],
  readAtMs: number,
): readonly Slot[] {
  return keys.map((key, index) => {
    const config = configs[index]!;
    const { onUnavailable } = config.settings ?? NO_SETTINGS;
    return { level: levelAt(key, config), readAtMs, onUnavailable };
  });
}

function selectLevels(
  keys: readonly ConfigKey[],
  missing: readonly ConfigKey[],
  shared: readonly (Slot | undefined)[],
  read: readonly Slot[],
): readonly (Policy | undefined)[] {
  const slots = keys.map((key, index) =>
    missing.includes(key) ? read[missing.indexOf(key)] : shared[index],
  );
  return slots.map((slot) => slot?.level);
}
