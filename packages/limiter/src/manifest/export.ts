import type { Entity } from "../core/entity.ts";
import { checkOptions, optionNames } from "../core/options.ts";
import type {
  DeclaredEntity,
  DeclaredLevel,
  DeclaredLimits,
} from "../repository/declared-limits.ts";
import type { LevelName, Page, Paging } from "../repository/models.ts";
import type { Repository } from "../repository/repository.ts";
import { readInChunks } from "./plan.ts";
import { readDeclaredSystem } from "./values.ts";

/** How to watch and stop an export. */
export interface ExportOptions {
  /**
   * Called from time to time with what has been read so far.
   * @example exportLimits(repository, { onProgress: ({ entities }) => console.log(entities) });
   */
  readonly onProgress?: (progress: ExportProgress) => void;
  /** Stops the export, which rejects with the signal's reason. */
  readonly signal?: AbortSignal;
}

const OPTION_NAMES = optionNames<ExportOptions>({ onProgress: true, signal: true });

/** The progress of an export. */
export interface ExportProgress {
  /** How many entities were found. */
  readonly entities: number;
  /** How many levels were read. */
  readonly levels: number;
}

/**
 * Returns everything stored in the repository's namespace as a declaration, including what no
 * manifest has named. A plan of it shows no change. It is not a snapshot: changes made during the
 * export may be missing. On DynamoDB, so may what was created in the second before.
 * @example const text = JSON.stringify(buildManifest("default", await exportLimits(repository)));
 */
export async function exportLimits(
  repository: Repository,
  options: ExportOptions = {},
): Promise<DeclaredLimits> {
  checkOptions(options, OPTION_NAMES, "exportLimits");
  const reading = new Reading(repository, options);
  const system = await readDeclaredSystem(repository);
  const resources = await reading.resources();
  const entities = await reading.entities();
  return { ...(Object.keys(system).length > 0 && { system }), resources, entities };
}

/** The largest page that repositories return. */
const PAGE_SIZE = 1000;

type Levels = Record<string, DeclaredLevel>;

/** What is known of an entity so far. */
interface Found {
  record?: Entity;
  readonly resources: Levels;
}

/** Reads one namespace, and reports progress. */
class Reading {
  readonly #repository: Repository;
  readonly #options: ExportOptions;
  readonly #found = new Map<string, Found>();
  #levels = 0;

  constructor(repository: Repository, options: ExportOptions) {
    this.#repository = repository;
    this.#options = options;
    options.signal?.throwIfAborted();
  }

  /** The defaults of resources. */
  async resources(): Promise<Levels> {
    const resources: Levels = {};
    const names = await this.#repository.listResourcesWithDefaults();
    for await (const [{ resource }, level] of this.#levelsAt(names.map(resourceLevel)))
      resources[resource!] = level;
    return resources;
  }

  /** Entities that have a record, limits, or both. */
  async entities(): Promise<Record<string, DeclaredEntity>> {
    const repository = this.#repository;
    for await (const page of this.#pages((paging) => repository.listEntities(paging)))
      for (const record of page) this.#getFound(record.id).record = record;
    for (const resource of await repository.listResourcesWithEntityConfigs())
      for await (const page of this.#pages((paging) =>
        repository.listEntitiesWithCustomLimits(resource, paging),
      ))
        await this.#readLimits(page, resource);
    const entries = [...this.#found].toSorted(([left], [right]) => (left < right ? -1 : 1));
    return Object.fromEntries(entries.map(([id, found]) => [id, toDeclaredEntity(found)]));
  }

  async #readLimits(entityIds: readonly string[], resource: string): Promise<void> {
    const names = entityIds.map((entityId) => ({ entityId, resource }));
    for await (const [{ entityId }, level] of this.#levelsAt(names))
      this.#getFound(entityId!).resources[resource] = level;
  }

  #getFound(entityId: string): Found {
    const found = this.#found.get(entityId) ?? { resources: {} };
    this.#found.set(entityId, found);
    return found;
  }

  /** Levels that were deleted since they were listed are left out. */
  async *#levelsAt(
    names: readonly LevelName[],
  ): AsyncGenerator<readonly [name: LevelName, level: DeclaredLevel]> {
    const read = (name: LevelName) => this.#repository.getLevel(name);
    for await (const { asked, found } of readInChunks(names, read)) {
      for (const [name, { limits, inherit }] of found) yield [name, { limits, inherit }];
      this.#levels += asked;
      this.#reportProgress();
    }
  }

  /** Every page makes progress, so the loop ends with the data. */
  async *#pages<T>(read: (paging: Paging) => Promise<Page<T>>): AsyncGenerator<readonly T[]> {
    let cursor: string | undefined;
    do {
      const page = await read({ limit: PAGE_SIZE, ...(cursor !== undefined && { cursor }) });
      yield page.items;
      this.#reportProgress();
      cursor = page.cursor;
    } while (cursor !== undefined);
  }

  #reportProgress(): void {
    const { signal, onProgress } = this.#options;
    signal?.throwIfAborted();
    onProgress?.({ entities: this.#found.size, levels: this.#levels });
  }
}

function resourceLevel(resource: string): LevelName {
  return { resource };
}

/**
 * An entity, with what creates its record as it is stored. Defaults are left out, except where they
 * say that there is a record at all: an entity that declares only limits gets none.
 */
function toDeclaredEntity({ record, resources }: Found): DeclaredEntity {
  if (record === undefined) return { resources };
  const { id, name, parentId, cascade, metadata } = record;
  const fields = {
    ...(parentId !== undefined && { parentId }),
    ...((cascade || parentId !== undefined) && { cascade }),
    ...(name !== id && { name }),
    ...(Object.keys(metadata).length > 0 && { metadata }),
  };
  const isSaid = Object.keys(fields).length > 0 || Object.keys(resources).length === 0;
  return { ...fields, ...(!isSaid && { name }), resources };
}
