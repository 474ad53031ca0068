import type { Entity } from "../core/entity.ts";
import { ValidationError } from "../core/errors.ts";
import type { DeclaredLevel, DeclaredLimits } from "../repository/declared-limits.ts";
import type { PendingApply, ProvisionerState, Repository } from "../repository/repository.ts";
import { diffLimits, type PlanEntry, type StoredEntity, type StoredLimits } from "./diff.ts";
import type { Manifest } from "./manifest.ts";
import { ManifestError, type ManifestProblem } from "./problems.ts";
import {
  listDeclaredRecords,
  listLevels,
  getOwn,
  readDeclaredSystem,
  type ResourceLevel,
} from "./values.ts";

/** As many reads at once as fill a batch of DynamoDB. */
const READS_AT_ONCE = 100;

/** What an apply of a manifest would do. */
export interface LimitsPlan {
  /** The namespace of the plan. */
  readonly namespace: string;
  /** The revision of the state that it was made from; an apply checks it. */
  readonly revision: number;
  /** Every level and record that this or an earlier manifest names, unchanged ones included. */
  readonly entries: readonly PlanEntry[];
  /** An apply that was started and has not finished; undefined if there is none. */
  readonly pending: PendingApply | undefined;
  /** The resource of CloudFormation that applied the limits; undefined if none did. */
  readonly owner: string | undefined;
}

/**
 * Compares a manifest with the store. Throws `ManifestError` if it cannot be applied, for example
 * because it names another parent for an entity than the stored one. Writes nothing.
 * @example const { entries } = await planLimits(repository, manifest);
 */
export async function planLimits(repository: Repository, manifest: Manifest): Promise<LimitsPlan> {
  checkNamespace(repository, manifest);
  const state = await repository.getProvisionerState();
  return {
    namespace: manifest.namespace,
    revision: state.revision,
    entries: await planFrom(repository, manifest, state),
    pending: state.pending,
    owner: state.owner,
  };
}

/** Reads the store and compares it with a manifest, given the state. */
export async function planFrom(
  repository: Repository,
  manifest: Manifest,
  state: ProvisionerState,
): Promise<readonly PlanEntry[]> {
  const stored = await readStored(repository, manifest.declared, state);
  const problems = findProblems(manifest, stored);
  if (problems.length > 0) throw new ManifestError(problems);
  return diffLimits(manifest.declared, stored, state);
}

/** A manifest is only applied to its own namespace. */
export function checkNamespace(repository: Repository, { namespace }: Manifest): void {
  const { namespaceName } = repository;
  if (namespaceName === namespace) return;
  throw new ValidationError(
    "namespace",
    namespace,
    `the repository works in '${namespaceName}'; open the manifest's namespace, such as with repository.namespace()`,
  );
}

/** Finds problems with the parents that a manifest declares, given what is stored. */
function findProblems(manifest: Manifest, stored: StoredLimits): readonly ManifestProblem[] {
  const records = listDeclaredRecords(manifest.declared);
  const findRecord = (id: string) => getOwn(stored.entities, id)?.record;
  const findParent = (id: string): string | undefined =>
    records.get(id)?.parentId ?? findRecord(id)?.parentId;
  const harmless = new Set<string>();
  return Object.entries(manifest.declared.entities).flatMap(([id, { parentId }]) => {
    if (parentId === undefined) return [];
    const record = findRecord(id);
    const problem = (message: string, suggestion: string): ManifestProblem =>
      manifest.problemAt(["entities", id, "parent"], message, suggestion);
    // Even if the parent was deleted: nothing has to be created, and exports name the stored
    // parent.
    if (record?.parentId === parentId) return [];
    if (record !== undefined)
      return problem(
        `Entity '${id}' is stored ${record.parentId === undefined ? "without a parent" : `with the parent '${record.parentId}'`}, which cannot be changed.`,
        `${record.parentId === undefined ? "Leave `parent` out" : "Declare the stored parent"}, or delete the entity and let it be created again.`,
      );
    if (!records.has(parentId) && findRecord(parentId) === undefined)
      return problem(
        `The parent '${parentId}' of entity '${id}' is neither declared nor stored.`,
        `Declare it: ${parentId}: {}`,
      );
    return isOwnAncestor(id, findParent, harmless)
      ? problem(
          `Entity '${id}' would be its own ancestor: a stored parent leads back to it.`,
          "Name another parent, or leave `parent` out.",
        )
      : [];
  });
}

/**
 * Follows the parents that are known; those that were not read cannot lead back. An entity that
 * leads to no circle is not followed again, so that a long chain takes linear time.
 */
function isOwnAncestor(
  id: string,
  findParent: (id: string) => string | undefined,
  harmless: Set<string>,
): boolean {
  const seen = new Set<string>();
  for (let next: string | undefined = id; next !== undefined; next = findParent(next)) {
    if (harmless.has(next)) break;
    if (seen.has(next)) return next === id;
    seen.add(next);
  }
  for (const entity of seen) harmless.add(entity);
  return false;
}

/** Reads what is stored of everything that a declaration names, or that the state manages. */
async function readStored(
  repository: Repository,
  declared: DeclaredLimits,
  state: ProvisionerState,
): Promise<StoredLimits> {
  const levels = listLevels(declared, state).map(({ name }) => name);
  const ids = [...listDeclaredRecords(declared)].flatMap(([id, { parentId }]) => [
    id,
    parentId ?? id,
  ]);
  return {
    system: await readDeclaredSystem(repository),
    ...groupStoredLevels(
      await readAll([...new Set(ids)], (id) => repository.getEntity(id)),
      await readAll(levels, (name) => repository.getLevel(name)),
    ),
  };
}

function groupStoredLevels(
  records: Found<string, Entity>,
  levels: Found<ResourceLevel, DeclaredLevel>,
): Pick<StoredLimits, "resources" | "entities"> {
  const recordOf = new Map(records);
  /** The levels of an entity are under its id, those of resources under undefined. */
  const levelsOf = new Map<string | undefined, [string, DeclaredLevel][]>();
  for (const [{ entityId, resource }, { limits, inherit }] of levels) {
    const held = levelsOf.get(entityId) ?? [];
    held.push([resource, { limits, inherit }]);
    levelsOf.set(entityId, held);
  }
  const listResources = (entityId: string | undefined): StoredEntity["resources"] =>
    Object.fromEntries(levelsOf.get(entityId) ?? []);
  const ids = new Set([...recordOf.keys(), ...levelsOf.keys()].filter((id) => id !== undefined));
  return {
    resources: listResources(undefined),
    entities: Object.fromEntries(
      [...ids].map((id) => [id, { record: recordOf.get(id), resources: listResources(id) }]),
    ),
  };
}

/** The results for those of the requested names that exist. */
type Found<Name, T> = readonly (readonly [Name, T])[];

async function readAll<Name, T>(
  names: readonly Name[],
  read: (name: Name) => Promise<T | undefined>,
): Promise<Found<Name, T>> {
  const all: (readonly [Name, T])[] = [];
  for await (const { found } of readInChunks(names, read)) all.push(...found);
  return all;
}

/** Reads chunk by chunk, and keeps what exists; `asked` is the number of names. */
export async function* readInChunks<Name, T>(
  names: readonly Name[],
  read: (name: Name) => Promise<T | undefined>,
): AsyncGenerator<{ readonly asked: number; readonly found: Found<Name, T> }> {
  for (let start = 0; start < names.length; start += READS_AT_ONCE) {
    const chunk = names.slice(start, start + READS_AT_ONCE);
    const answers = await Promise.all(chunk.map(read));
    const found = chunk.flatMap((name, index) => {
      const answer = answers[index];
      return answer === undefined ? [] : [[name, answer] as const];
    });
    yield { asked: chunk.length, found };
  }
}
