import { ZaeLimiterError } from "../core/errors.ts";
import type { Repository } from "../repository/repository.ts";
import type { PlanEntry } from "./diff.ts";
import type { Manifest } from "./manifest.ts";
import type { LimitsPlan } from "./plan.ts";

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
 * earlier one stops with `ApplyConflictError` and changes nothing any more.
 * @example const { created, updated } = await applyLimits(repository, manifest);
 */
export async function applyLimits(
  repository: Repository,
  manifest: Manifest,
  options: ApplyOptions = {},
): Promise<ApplyReport> {
  throw new Error(`not built yet: ${repository.namespaceName} ${manifest.namespace} ${options}`);
}
