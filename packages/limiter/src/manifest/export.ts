import type { DeclaredLimits } from "../repository/declared-limits.ts";
import type { Repository } from "../repository/repository.ts";

/** How an export is watched and stopped. */
export interface ExportOptions {
  /**
   * Called now and then with what was read so far.
   * @example await exportLimits(repository, { onProgress: ({ entities }) => console.log(entities) });
   */
  readonly onProgress?: (progress: ExportProgress) => void;
  /** Stops the export, which rejects with the signal's reason. */
  readonly signal?: AbortSignal;
}

/** How far an export is. */
export interface ExportProgress {
  /** How many entities were read. */
  readonly entities: number;
}

/**
 * Everything that is stored in the repository's namespace, as a declaration. A plan of it shows no
 * change.
 * @example const text = stringify(manifestOf("default", await exportLimits(repository)));
 */
export async function exportLimits(
  repository: Repository,
  options: ExportOptions = {},
): Promise<DeclaredLimits> {
  throw new Error(`not built yet: ${repository.namespaceName} ${options}`);
}

/**
 * A declaration in the format of a manifest, as plain values to be written as YAML or JSON.
 * @example JSON.stringify(manifestOf("default", declared));
 */
export function manifestOf(namespace: string, declared: DeclaredLimits): object {
  throw new Error(`not built yet: ${namespace} ${JSON.stringify(declared)}`);
}
