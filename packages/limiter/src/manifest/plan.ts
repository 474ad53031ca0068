import type { PendingApply } from "../repository/models.ts";
import type { Repository } from "../repository/repository.ts";
import type { PlanEntry } from "./diff.ts";
import type { Manifest } from "./manifest.ts";

/** What an apply of a manifest would do. */
export interface LimitsPlan {
  /** The namespace that the plan is about. */
  readonly namespace: string;
  /** The revision of the state that it was made from; an apply checks it. */
  readonly revision: number;
  /** Every level and record that the manifest, or an earlier one, names; also the unchanged. */
  readonly entries: readonly PlanEntry[];
  /** An apply that has begun and has not ended; undefined if there is none. */
  readonly pending: PendingApply | undefined;
}

/**
 * Compares a manifest with the store. Throws `ManifestError` if it cannot be applied, such as for
 * another parent than the stored one. Writes nothing.
 * @example const { entries } = await planLimits(repository, manifest);
 */
export async function planLimits(repository: Repository, manifest: Manifest): Promise<LimitsPlan> {
  throw new Error(`not built yet: ${repository.namespaceName} ${manifest.namespace}`);
}
