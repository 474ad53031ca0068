import { escapeControls, ValidationError } from "../core/errors.ts";

/** One problem of a manifest, and its place. */
export interface ManifestProblem {
  /** The file, as it was named. */
  readonly file: string;
  /** From 1; undefined where the document has no positions. */
  readonly line: number | undefined;
  /** From 1; undefined where the document has no positions. */
  readonly column: number | undefined;
  /** Where in the document: `resources.gpt-4.limits.tpm`. */
  readonly path: string;
  /** The problem, in one sentence. */
  readonly message: string;
  /** What to write instead; undefined if that is unknown. */
  readonly suggestion: string | undefined;
}

/** More lines than this hide the first one, which matters most. `problems` has all. */
const MOST_LINES = 50;

/** A manifest is not valid. Nothing was read from the store, and nothing written. */
export class ManifestError extends ValidationError {
  /** All problems, in order of files and lines. */
  readonly problems: readonly ManifestProblem[];

  constructor(problems: readonly ManifestProblem[]) {
    const lines = problems.slice(0, MOST_LINES).map(formatProblem);
    const left = problems.length - lines.length;
    const text = [...lines, ...(left > 0 ? [`and ${left} more`] : [])].join("\n");
    super("manifest", undefined, text, "ERR_LIMITER_MANIFEST");
    // Without "Invalid manifest: ", so that every line begins with a place that editors can open.
    this.message = text;
    this.problems = problems;
  }
}

/**
 * One line about a problem: `file:line:column: message suggestion`.
 * @example for (const problem of error.problems) console.error(formatProblem(problem));
 */
export function formatProblem(problem: ManifestProblem): string {
  const { message, suggestion } = problem;
  const sentences = suggestion === undefined ? message : `${message} ${suggestion}`;
  return escapeControls(`${formatPlace(problem)}: ${sentences}`);
}

/** Where a problem is: `file:line:column`, or the file alone. */
export function formatPlace({
  file,
  line,
  column,
}: Pick<ManifestProblem, "file" | "line" | "column">): string {
  return line === undefined ? file : `${file}:${line}:${column ?? 1}`;
}
