import { ApplyConflictError, ZaeLimiterError } from "../core/errors.ts";
import { checkOptions, optionNames } from "../core/options.ts";
import type { DeclaredLimits } from "../repository/declared-limits.ts";
import type { ProvisionerState, Repository } from "../repository/repository.ts";
import { describeChange, makeChange } from "./changes.ts";
import type { PlanAction, PlanEntry } from "./diff.ts";
import type { Manifest } from "./manifest.ts";
import { checkNamespace, planFrom, type LimitsPlan } from "./plan.ts";
import { getOwn } from "./values.ts";

/*
 * The protocol of an apply. The revision of the state is the only lock, and there is no clock:
 *
 *   read the state at r → put r+1: "this is being applied" → read the store, plan
 *     → make the changes one by one, each only while the revision is r+1 → put r+2: "was applied"
 *
 * When another apply starts, it takes the revision away: our remaining changes fail, in the same
 * atomic step in which they would be written. It reads the store after that, so it starts from
 * everything that we have written, and wins as a whole. A process that dies leaves `pending`, which
 * shows what may be stored besides `applied`; everything named by either is managed, so the next
 * apply, of whichever manifest, continues from there (ADR 020).
 */

/** How a manifest is applied. */
export interface ApplyOptions {
  /** The plan that was agreed to; if the store now needs another one, nothing is changed. */
  readonly plan?: LimitsPlan;
  /** Who applies the manifest, for the audit trail. */
  readonly principal?: string;
  /** The physical id of the resource of CloudFormation that applies it. @default none */
  readonly owner?: string;
  /**
   * Called after each change.
   * @example
   * await applyLimits(repository, manifest, { onProgress: ({ done }) => console.log(done) });
   */
  readonly onProgress?: (progress: ApplyProgress) => void;
  /** Stops between two changes; `ApplyError` lists what is left. */
  readonly signal?: AbortSignal;
}

const OPTION_NAMES = optionNames<ApplyOptions>({
  plan: true,
  principal: true,
  owner: true,
  onProgress: true,
  signal: true,
});

/** The progress of an apply. */
export interface ApplyProgress {
  /** How many changes have been made. */
  readonly done: number;
  /** How many changes there are. */
  readonly total: number;
  /** The last change. */
  readonly entry: PlanEntry;
}

/** The result of an apply. */
export interface ApplyReport {
  /** The revision of the state afterwards. */
  readonly revision: number;
  /** How many levels and records were created. */
  readonly created: number;
  /** How many levels and records were changed. */
  readonly updated: number;
  /** How many levels were deleted. */
  readonly deleted: number;
  /** How many levels and records were already as declared. */
  readonly unchanged: number;
}

/** An apply did not finish. Its changes stay; applying again continues with what is left. */
export class ApplyError extends ZaeLimiterError {
  /** How many changes were made. */
  readonly done: number;
  /** What was not changed, beginning with the entry that failed. */
  readonly left: readonly PlanEntry[];

  constructor(message: string, { done, left, cause }: Pick<ApplyError, "done" | "left" | "cause">) {
    super("ERR_LIMITER_APPLY", message, { cause });
    this.done = done;
    this.left = left;
  }
}

/**
 * Brings the store to what a manifest declares, level by level, through the repository's own
 * methods. Safe to repeat after an interruption. Of two at once, the later one wins, and the
 * earlier one stops with `ApplyConflictError` and changes nothing any more. If a change fails for
 * another reason, or `signal` aborts, it throws `ApplyError`.
 * @example const { created, updated } = await applyLimits(repository, manifest);
 */
export async function applyLimits(
  repository: Repository,
  manifest: Manifest,
  options: ApplyOptions = {},
): Promise<ApplyReport> {
  checkOptions(options, OPTION_NAMES, "applyLimits");
  checkNamespace(repository, manifest);
  const state = await repository.getProvisionerState();
  if (options.plan !== undefined && options.plan.revision !== state.revision)
    throw new ApplyConflictError(options.plan.revision);
  const apply = { repository, manifest, options, state };
  const planned = await planAsAgreed(apply);
  if (isApplied(apply) && planned.every(isUnchanged)) return buildReport(planned, state.revision);
  if (options.signal?.aborted === true)
    throw buildStoppedError({ done: 0, left: planned.filter(isChange) }, options.signal.reason);
  const begun = buildBegunState(apply);
  await repository.putProvisionerState(begun);
  const entries = await planAgain(apply);
  await makeChanges(apply, entries.filter(isChange));
  await putEnd(apply, begun, entries.filter(isChange).length);
  return buildReport(entries, state.revision + 2);
}

/** One apply: what is applied to what, from which state. */
interface Apply {
  readonly repository: Repository;
  readonly manifest: Manifest;
  readonly options: ApplyOptions;
  /** As read at the start, at revision r. */
  readonly state: ProvisionerState;
}

/** Plans, and throws if the plan differs from the one that was agreed to. */
async function planAsAgreed(apply: Apply): Promise<readonly PlanEntry[]> {
  const { repository, manifest, options, state } = apply;
  const entries = await planFrom(repository, manifest, state);
  if (options.plan === undefined || isSame(entries, options.plan.entries)) return entries;
  throw new ApplyError(
    "Nothing was changed, because the stored limits were changed since the plan was made. Plan again.",
    { done: 0, left: entries.filter(isChange), cause: undefined },
  );
}

/** Whether the state already says that exactly this was applied. */
function isApplied({ state, manifest, options }: Apply): boolean {
  return (
    state.applied !== undefined &&
    state.appliedHash === manifest.hash &&
    state.pending === undefined &&
    state.owner === options.owner
  );
}

/** The state while the changes are made: everything that may be stored for us is managed. */
function buildBegunState({ repository, manifest, options, state }: Apply): ProvisionerState {
  const { hash, declared } = manifest;
  const { owner, principal } = options;
  const managed = listManaged(declared);
  return {
    ...state,
    managedSystem: state.managedSystem || managed.managedSystem,
    managedResources: union(state.managedResources, managed.managedResources),
    managedEntities: unionByEntity(state.managedEntities, managed.managedEntities),
    ...findApplied(state, hash),
    pending: {
      hash,
      startedAt: new Date(repository.clock.now()),
      ...(principal !== undefined && { principal }),
      declared,
    },
    owner,
  };
}

/**
 * What was applied, once this apply has started. If it follows an interrupted apply of another
 * manifest, any level may hold what either of them declares: without a hash, nothing is called
 * drift. The settings of both are kept, because nothing else says that they are ours.
 */
function findApplied(
  { applied, appliedHash, pending }: ProvisionerState,
  hash: string,
): Pick<ProvisionerState, "applied" | "appliedHash"> {
  const known = applied ?? { resources: {}, entities: {} };
  if (pending === undefined || pending.hash === hash) return { applied: known, appliedHash };
  const system = { ...pending.declared.system, ...known.system };
  return { applied: { ...known, system }, appliedHash: undefined };
}

/** Plans again, now that no other apply runs. If it cannot continue, it restores the state. */
async function planAgain(apply: Apply): Promise<readonly PlanEntry[]> {
  const { repository, state } = apply;
  try {
    return await planAsAgreed(apply);
  } catch (error) {
    // If this fails too, the state is still right, as after any interruption.
    await repository
      .putProvisionerState({ ...state, revision: state.revision + 1 })
      .catch(() => undefined);
    throw error;
  }
}

/** One after another: each checks the same revision, and DynamoDB refuses two that do so. */
async function makeChanges(apply: Apply, changes: readonly PlanEntry[]): Promise<void> {
  const { repository, manifest, options, state } = apply;
  const { principal, onProgress, signal } = options;
  const by = { ...(principal !== undefined && { principal }), ifRevision: state.revision + 1 };
  for (const [done, entry] of changes.entries()) {
    const rest = (): Rest => ({ done, left: changes.slice(done) });
    if (signal?.aborted === true) throw buildStoppedError(rest(), signal.reason);
    try {
      await makeChange({ repository, declared: manifest.declared, by }, entry);
    } catch (error) {
      if (error instanceof ApplyConflictError) throw error;
      throw buildFailedError(`${describeChange(entry)} failed`, rest(), error);
    }
    onProgress?.({ done: done + 1, total: changes.length, entry });
  }
}

async function putEnd(
  { repository, manifest }: Apply,
  begun: ProvisionerState,
  done: number,
): Promise<void> {
  const { pending: _, revision, owner } = begun;
  try {
    await repository.putProvisionerState({
      ...listManaged(manifest.declared),
      applied: manifest.declared,
      appliedHash: manifest.hash,
      lastApplied: new Date(repository.clock.now()),
      owner,
      revision: revision + 1,
    });
  } catch (error) {
    if (error instanceof ApplyConflictError) throw error;
    throw buildFailedError("Recording the applied manifest failed", { done, left: [] }, error);
  }
}

type Managed = Pick<ProvisionerState, "managedSystem" | "managedResources" | "managedEntities">;

/** The levels that a declaration names. */
function listManaged({ system, resources, entities }: DeclaredLimits): Managed {
  const named = Object.entries(entities).map(([id, entity]) => [id, Object.keys(entity.resources)]);
  return {
    managedSystem: system?.limits !== undefined,
    managedResources: Object.keys(resources),
    managedEntities: Object.fromEntries(
      named.filter(([, names]) => names!.length > 0),
    ) as Managed["managedEntities"],
  };
}

function unionByEntity(
  left: Managed["managedEntities"],
  right: Managed["managedEntities"],
): Managed["managedEntities"] {
  const ids = union(Object.keys(left), Object.keys(right));
  return Object.fromEntries(
    ids.map((id) => [id, union(getOwn(left, id) ?? [], getOwn(right, id) ?? [])]),
  );
}

function union(left: readonly string[], right: readonly string[]): readonly string[] {
  return [...new Set([...left, ...right])];
}

function isUnchanged({ action }: PlanEntry): boolean {
  return action === "unchanged";
}

function isChange(entry: PlanEntry): boolean {
  return !isUnchanged(entry);
}

/** Plans of the same manifest and store are equal in every detail, their order included. */
function isSame(left: readonly PlanEntry[], right: readonly PlanEntry[]): boolean {
  return JSON.stringify(left) === JSON.stringify(right);
}

function buildReport(entries: readonly PlanEntry[], revision: number): ApplyReport {
  const count = (action: PlanAction): number =>
    entries.filter((entry) => entry.action === action).length;
  return {
    revision,
    created: count("create"),
    updated: count("update"),
    deleted: count("delete"),
    unchanged: count("unchanged"),
  };
}

type Rest = Pick<ApplyError, "done" | "left">;

function buildStoppedError(rest: Rest, reason: unknown): ApplyError {
  return buildFailedError("It was stopped", rest, reason);
}

function buildFailedError(what: string, { done, left }: Rest, cause: unknown): ApplyError {
  const why = (cause instanceof Error ? cause.message : String(cause)).replace(/\.?$/, ".");
  return new ApplyError(
    `${done} of ${done + left.length} changes were made. ${what}: ${why} Applying the manifest again continues with what is left.`,
    { done, left, cause },
  );
}
