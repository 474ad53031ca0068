import {
  mergeConfig,
  NO_CONFIG,
  withoutLimits,
  type AuditEvent,
  type ConfigKey,
  type DeleteOptions,
  type Guard,
  type Keyed,
  type KeyPage,
  type LimitStore,
  type StoredConfig,
  type SystemSettings,
} from "zae-limiter/backend";
import type { MapAudit } from "./map-audit.ts";
import { readPage } from "./map-page.ts";
import type { MapProvisioner } from "./map-provisioner.ts";

/** The limits of all levels. */
export class MapLimits implements LimitStore {
  #system: StoredConfig = NO_CONFIG;
  readonly #resources = new Map<string, StoredConfig>();
  /** By resource, then by entity. */
  readonly #entities = new Map<string, Map<string, StoredConfig>>();
  readonly #provisioner: MapProvisioner;
  readonly #audit: MapAudit;

  constructor(provisioner: MapProvisioner, audit: MapAudit) {
    this.#provisioner = provisioner;
    this.#audit = audit;
  }

  get settings(): SystemSettings | undefined {
    return this.#system.settings;
  }

  read(keys: readonly ConfigKey[]): readonly StoredConfig[] {
    return keys.map((key) => this.#read(key));
  }

  put(key: ConfigKey, config: StoredConfig, event: AuditEvent, guard: Guard): void {
    this.#provisioner.check(guard);
    if (key.level === "system") this.#system = mergeConfig(this.#system, config);
    else if (key.level === "resource") this.#resources.set(key.resource, config);
    else {
      const entities = this.#entities.get(key.resource) ?? new Map<string, StoredConfig>();
      this.#entities.set(key.resource, entities.set(key.entityId, config));
    }
    this.#audit.add(event);
  }

  delete(key: ConfigKey, event: AuditEvent, options: DeleteOptions): boolean {
    this.#provisioner.check(options);
    const isDeleted = this.#delete(key, options);
    if (isDeleted) this.#audit.add(event);
    return isDeleted;
  }

  deleteEntity(entityId: string): number {
    return [...this.#entities.keys()].filter((resource) => this.#deleteOne(entityId, resource))
      .length;
  }

  resourcesWithDefaults(): readonly string[] {
    return [...this.#resources.keys()].sort();
  }

  entitiesWithLimits(resource: string, page: KeyPage): Keyed<string> {
    const { items, next } = readPage(this.#entities.get(resource) ?? new Map(), page);
    return { items: items.map(([entityId]) => entityId), next };
  }

  resourcesWithEntityLimits(): readonly string[] {
    return [...this.#entities.keys()].sort();
  }

  #read(key: ConfigKey): StoredConfig {
    if (key.level === "system") return this.#system;
    const held =
      key.level === "resource"
        ? this.#resources.get(key.resource)
        : this.#entities.get(key.resource)?.get(key.entityId);
    return held ?? NO_CONFIG;
  }

  #delete(key: ConfigKey, options: DeleteOptions): boolean {
    if (key.level === "resource") return this.#resources.delete(key.resource);
    if (key.level === "entity") return this.#deleteOne(key.entityId, key.resource);
    const before = this.#system;
    this.#system = options.keepSettings ? withoutLimits(before) : NO_CONFIG;
    return options.keepSettings ? before.limits !== undefined : before !== NO_CONFIG;
  }

  #deleteOne(entityId: string, resource: string): boolean {
    const entities = this.#entities.get(resource);
    const isDeleted = entities?.delete(entityId) ?? false;
    if (entities?.size === 0) this.#entities.delete(resource);
    return isDeleted;
  }
}
