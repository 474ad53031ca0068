import { termsOf, type LimitSpec, type Terms } from "./terms.ts";

/** Where limits are stored; entity limits without resource hold for all of its resources. */
export interface Level {
  readonly entityId?: string;
  readonly resource?: string;
}

/** Stored limits of the four levels, and entity records. */
export class OracleConfig {
  readonly #limits = new Map<string, readonly Terms[]>();
  readonly #entities = new Map<
    string,
    { readonly parentId: string | undefined; readonly cascade: boolean }
  >();

  set(level: Level, limits: readonly LimitSpec[] | undefined): void {
    if (limits === undefined) this.#limits.delete(levelKey(level));
    else this.#limits.set(levelKey(level), limits.map(termsOf));
  }

  /** The first level that has limits wins whole. */
  resolve(
    entityId: string,
    resource: string,
  ): { readonly wanted: readonly Terms[]; readonly source: string } | undefined {
    const levels: readonly (readonly [string, Level])[] = [
      ["entity", { entityId, resource }],
      ["entity_default", { entityId }],
      ["resource", { resource }],
      ["system", {}],
    ];
    for (const [source, level] of levels) {
      const wanted = this.#limits.get(levelKey(level));
      if (wanted !== undefined) return { wanted, source };
    }
    return undefined;
  }

  /** Why an entity cannot be created; undefined when it was. */
  create(entityId: string, parentId: string | undefined, cascade: boolean): string | undefined {
    if (this.#entities.has(entityId)) return "EntityExistsError";
    if (parentId !== undefined && !this.#entities.has(parentId)) return "EntityNotFoundError";
    this.#entities.set(entityId, { parentId, cascade });
    return undefined;
  }

  /** Changes whether calls of an entity that exists also take from its parent. */
  setCascade(entityId: string, cascade: boolean): void {
    this.#entities.set(entityId, { ...this.#entities.get(entityId)!, cascade });
  }

  hasChildren(entityId: string): boolean {
    return [...this.#entities.values()].some(({ parentId }) => parentId === entityId);
  }

  /** Forgets record and limits of an entity; returns how many there were. */
  delete(entityId: string): number {
    const levels = [...this.#limits.keys()].filter((key) => key.startsWith(`entity ${entityId} `));
    for (const key of levels) this.#limits.delete(key);
    return levels.length + (this.#entities.delete(entityId) ? 1 : 0);
  }

  /** The parent that calls of an entity also take from. */
  cascadesTo(entityId: string): string | undefined {
    const entity = this.#entities.get(entityId);
    return entity?.cascade === true ? entity.parentId : undefined;
  }
}

function levelKey({ entityId, resource }: Level): string {
  if (entityId !== undefined) return `entity ${entityId} ${resource ?? ""}`;
  return resource === undefined ? "system" : `resource ${resource}`;
}
