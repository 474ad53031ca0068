import type { AuditEvent } from "../../core/audit.ts";
import type { ConfigKey } from "../../core/bucket/policy.ts";
import {
  mergeConfig,
  NO_CONFIG,
  withoutLimits,
  type DeleteOptions,
  type Guard,
  type Keyed,
  type KeyPage,
  type LimitStore,
  type StoredConfig,
  type SystemSettings,
} from "../store.ts";
import type { MemoryAudit } from "./audit.ts";
import type { MemoryProvisioner } from "./records.ts";
import { buildSortedPage } from "./build-sorted-page.ts";

/** The limits of all four levels. */
export class MemoryLimits implements LimitStore {
  #system: StoredConfig = NO_CONFIG;
  readonly #resources = new Map<string, StoredConfig>();
  /** By resource, then by entity. */
  readonly #entities = new Map<string, Map<string, StoredConfig>>();
  readonly #audit: () => MemoryAudit;
  readonly #provisioner: MemoryProvisioner;

  constructor(audit: () => MemoryAudit, provisioner: MemoryProvisioner) {
    this.#audit = audit;
    this.#provisioner = provisioner;
  }

  get settings(): SystemSettings | undefined {
    return this.#system.settings;
  }

  read(keys: readonly ConfigKey[]): readonly StoredConfig[] {
    return keys.map((key) => this.#get(key));
  }

  put(key: ConfigKey, config: StoredConfig, event: AuditEvent, guard: Guard): void {
    this.#provisioner.check(guard);
    if (key.level === "system") this.#system = mergeConfig(this.#system, config);
    else if (config.limits === undefined) return;
    else if (key.level === "resource") this.#resources.set(key.resource, config);
    else this.#getOrAddResource(key.resource).set(key.entityId, config);
    this.#audit().add(event);
  }

  delete(key: ConfigKey, event: AuditEvent, options: DeleteOptions): boolean {
    this.#provisioner.check(options);
    const deleted = options.keepSettings ? this.#removeSystemLimits() : this.#remove(key);
    if (deleted) this.#audit().add(event);
    return deleted;
  }

  deleteEntity(entityId: string): number {
    const held = [...this.#entities.keys()].filter((resource) =>
      this.#getOrAddResource(resource).has(entityId),
    );
    for (const resource of held) this.#remove({ level: "entity", entityId, resource });
    return held.length;
  }

  resourcesWithDefaults(): readonly string[] {
    return [...this.#resources.keys()].sort();
  }

  entitiesWithLimits(resource: string, page: KeyPage): Keyed<string> {
    return buildSortedPage(
      [...(this.#entities.get(resource)?.keys() ?? [])],
      (entityId) => entityId,
      page,
    );
  }

  resourcesWithEntityLimits(): readonly string[] {
    return [...this.#entities.keys()].sort();
  }

  clear(): number {
    const count =
      this.#resources.size +
      [...this.#entities.values()].reduce((sum, entities) => sum + entities.size, 0) +
      (this.#system === NO_CONFIG ? 0 : 1);
    this.#system = NO_CONFIG;
    this.#resources.clear();
    this.#entities.clear();
    return count;
  }

  #get(key: ConfigKey): StoredConfig {
    if (key.level === "system") return this.#system;
    if (key.level === "resource") return this.#resources.get(key.resource) ?? NO_CONFIG;
    return this.#entities.get(key.resource)?.get(key.entityId) ?? NO_CONFIG;
  }

  #getOrAddResource(resource: string): Map<string, StoredConfig> {
    const entities = this.#entities.get(resource) ?? new Map<string, StoredConfig>();
    this.#entities.set(resource, entities);
    return entities;
  }

  #removeSystemLimits(): boolean {
    if (this.#system.limits === undefined) return false;
    this.#system = withoutLimits(this.#system);
    return true;
  }

  #remove(key: ConfigKey): boolean {
    if (key.level === "system") {
      const held = this.#system !== NO_CONFIG;
      this.#system = NO_CONFIG;
      return held;
    }
    if (key.level === "resource") return this.#resources.delete(key.resource);
    const entities = this.#entities.get(key.resource);
    const held = entities?.delete(key.entityId) ?? false;
    if (entities?.size === 0) this.#entities.delete(key.resource);
    return held;
  }
}
