import { toTerms, type LimitSpec, type Terms } from "./terms.ts";

/** Where limits are stored; entity limits without resource hold for all of its resources. */
export interface Level {
  readonly entityId?: string;
  readonly resource?: string;
}

/** What one level stores. */
interface StoredTerms {
  readonly terms: readonly Terms[];
  readonly inherit: boolean;
}

/** The limits that hold, with the level that each came from. */
export interface ResolvedTerms {
  readonly wanted: readonly Terms[];
  readonly sources: ReadonlyMap<string, string>;
}

/** Stored limits of the four levels, the limiters' defaults below them, and entity records. */
export class OracleConfig {
  readonly #limits = new Map<string, StoredTerms>();
  /** By entity and resource, since the last change. */
  readonly #resolved = new Map<string, ResolvedTerms | undefined>();
  readonly #entities = new Map<
    string,
    { readonly parentId: string | undefined; readonly cascade: boolean }
  >();

  set(level: Level, limits: readonly LimitSpec[] | undefined, inherit = false): void {
    this.#resolved.clear();
    if (limits === undefined) this.#limits.delete(levelKey(level));
    else this.#limits.set(levelKey(level), { terms: limits.map(toTerms), inherit });
  }

  /** All limiters have the same ones. */
  setDefaults(limits: readonly LimitSpec[]): void {
    this.#limits.set(levelKey(IN_CODE), { terms: limits.map(toTerms), inherit: true });
  }

  /**
   * Each limit comes from the first level that has it, and no level counts below the first that
   * has limits and does not inherit.
   */
  resolve(entityId: string, resource: string): ResolvedTerms | undefined {
    const key = `${entityId} ${resource}`;
    if (!this.#resolved.has(key)) this.#resolved.set(key, this.#resolve(entityId, resource));
    return this.#resolved.get(key);
  }

  #resolve(entityId: string, resource: string): ResolvedTerms | undefined {
    const wanted: Terms[] = [];
    const sources = new Map<string, string>();
    for (const [source, level] of listLevels(entityId, resource)) {
      const stored = this.#limits.get(levelKey(level));
      for (const terms of stored?.terms ?? []) {
        if (sources.has(terms.name)) continue;
        wanted.push(terms);
        sources.set(terms.name, source);
      }
      if (stored?.inherit === false) break;
    }
    return wanted.length === 0 ? undefined : { wanted, sources };
  }

  /** Whether any level has a limit of this name, whether it holds or not. */
  knows(entityId: string, resource: string, limitName: string): boolean {
    return listLevels(entityId, resource).some(([, level]) =>
      this.#limits.get(levelKey(level))?.terms.some(({ name }) => name === limitName),
    );
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
    this.#resolved.clear();
    return levels.length + (this.#entities.delete(entityId) ? 1 : 0);
  }

  /** The parent that calls of an entity also take from. */
  cascadesTo(entityId: string): string | undefined {
    const entity = this.#entities.get(entityId);
    return entity?.cascade === true ? entity.parentId : undefined;
  }
}

/** The levels of an entity and a resource, strongest first. */
function listLevels(entityId: string, resource: string): readonly (readonly [string, Level])[] {
  return [
    ["entity", { entityId, resource }],
    ["entity_default", { entityId }],
    ["resource", { resource }],
    ["system", {}],
    ["constructor", IN_CODE],
  ];
}

/** No resource has such a name. */
const IN_CODE: Level = { resource: "#code" };

function levelKey({ entityId, resource }: Level): string {
  if (entityId !== undefined) return `entity ${entityId} ${resource ?? ""}`;
  return resource === undefined ? "system" : `resource ${resource}`;
}
