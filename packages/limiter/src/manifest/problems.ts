import { ValidationError } from "../core/errors.ts";

/** One thing that is wrong with a manifest, and where. */
export interface ManifestProblem {
  /** The file, as it was named. */
  readonly file: string;
  /** From 1; undefined where the document has no positions. */
  readonly line: number | undefined;
  /** From 1; undefined where the document has no positions. */
  readonly column: number | undefined;
  /** Where in the document: `resources.gpt-4.limits.tpm`. */
  readonly path: string;
  /** What is wrong, in one sentence. */
  readonly message: string;
  /** What to write instead; undefined if nobody can know. */
  readonly suggestion: string | undefined;
}

/** A manifest is not valid. Nothing was read from the store, and nothing written. */
export class ManifestError extends ValidationError {
  /** Everything that is wrong, in order of files and lines. */
  readonly problems: readonly ManifestProblem[];

  constructor(problems: readonly ManifestProblem[]) {
    super("manifest", undefined, "", "ERR_LIMITER_MANIFEST");
    this.message = problems.map(({ file, message }) => `${file}: ${message}`).join("\n");
    this.problems = problems;
  }
}
