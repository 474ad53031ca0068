import { ApplyConflictError, ZaeLimiterError } from "../core/errors.ts";
import type { DeclaredLimits } from "../repository/declared-limits.ts";
import type { ProvisionerState, Repository } from "../repository/repository.ts";
import { describeChange, makeChange } from "./changes.ts";
import type { PlanEntry } from "./diff.ts";
import type { Manifest } from "./manifest.ts";
import { checkNamespace, planFrom, type LimitsPlan } from "./plan.ts";

/*
 * The protocol of an apply. The revision of the state is the only lock, and there is no clock:
 *
 *   read the state at r → put r+1: "this is being applied" → read the store, plan
 *     → make the changes one by one, each only while the revision is r+1 → put r+2: "was applied"
 *
 * Another apply that begins takes the revision away: the changes that are left fail, in the same
 * atomic step in which they would be written. It reads the store after that, so it starts from all
 * that we have written, and wins whole. A process that dies leaves `pending`, which says what may
 * be stored besides `applied`; all that is named by either is managed, so the next apply, of
 * whatever manifest, goes on from there (ADR 054).
 */

/** How a manifest is applied. */
export interface ApplyOptions {
  /** The plan that was agreed to; if another one has become necessary, nothing is changed. */
  readonly plan?: LimitsPlan;
  /** Who applies it, for the audit trail. */
  readonly principal?: string;
  /** The physical id of the resource of CloudFormation that applies it. @default none */
  readonly owner?: string;
  /**
   * Called after each change.
   * @example await applyLimits(repository, manifest, { onProgress: ({ done }) => console.log(done) });
   */
  readonly onProgress?: (progress: ApplyProgress) => void;
  /** Stops between two changes; what is left is said by `ApplyError`. */
  readonly signal?: AbortSignal;
}

/** How far an apply is. */
export interface ApplyProgress {
  readonly done: number;
  readonly total: number;
  /** What was changed last. */
  readonly entry: PlanEntry;
}

/** What an apply has done. */
export interface ApplyReport {
  /** The revision of the state afterwards. */
  readonly revision: number;
  readonly created: number;
  readonly updated: number;
  readonly deleted: number;
  readonly unchanged: number;
}

/** An apply did not end. What was changed stays; applying again goes on with what is left. */
export class ApplyError extends ZaeLimiterError {
  /** How many changes were made. */
  readonly done: number;
  /** What was not changed, the entry that failed first. */
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
 * earlier one stops with `ApplyConflictError` and changes nothing any more. Any other failure of a
 * change is an `ApplyError`.
 * @example const { created, updated } = await applyLimits(repository, manifest);
 */
export async function applyLimits(
  repository: Repository,
  manifest: Manifest,
  options: ApplyOptions = {},
): Promise<ApplyReport> {
  checkNamespace(repository, manifest);
  const state = await repository.getProvisionerState();
  if (options.plan !== undefined && options.plan.revision !== state.revision)
    throw new ApplyConflictError(options.plan.revision);
  const planned = await agreedEntries(repository, manifest, state, options);
  if (isApplied(state, manifest, options) && planned.every(isUnchanged))
    return reportOf(planned, state.revision);
  if (options.signal?.aborted === true) throw stopped({ done: 0, left: planned }, options.signal);
  const begun = begunState(repository, state, manifest, options);
  await repository.putProvisionerState({ ...begun, revision: state.revision });
  const entries = await entriesUnder(begun, { repository, manifest, state, options });
  await makeChanges(repository, manifest, entries, { ...options, revision: begun.revision });
  await putEnd(repository, manifest, begun, entries);
  return reportOf(entries, begun.revision + 1);
}
