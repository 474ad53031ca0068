import { LineCounter, parseAllDocuments, type YAMLError } from "yaml";
import {
  formatProblem,
  ManifestError,
  type ManifestDocument,
  type ManifestProblem,
} from "zae-limiter/manifest";
import { convertedNode, type Converted } from "./converted-node.ts";
import { syntaxAdvice } from "./syntax-advice.ts";

/**
 * Parses a file of a manifest, YAML 1.2 or JSON, and remembers where its values stand. Throws
 * `ManifestError` with every error of its syntax.
 * @example const manifest = readManifest([yamlDocument("limits.yaml", text)]);
 */
export function yamlDocument(file: string, text: string): ManifestDocument {
  const lines = new LineCounter();
  const problems: ManifestProblem[] = [];
  const report = (offset: number, message: string, suggestion: string): void => {
    const { line, col } = lines.linePos(offset);
    problems.push({ file, line, column: col, path: "", message, suggestion });
  };
  const documents = parseAllDocuments(withoutMark(text), {
    lineCounter: lines,
    prettyErrors: false,
    // Also where a directive asks for YAML 1.1, in which `no` is a truth value.
    schema: "core",
    // Keys as they are written: an entity 007 is not the entity 7.
    stringKeys: true,
    // The package compares every key with every other one; the conversion takes linear time.
    uniqueKeys: false,
    // Dates, sets and binary values are no part of a manifest.
    resolveKnownTags: false,
  });
  for (const { errors, warnings } of documents)
    for (const error of [...errors, ...warnings])
      report(error.pos[0], sentenceOf(error), syntaxAdvice(error.code, error.message));
  const [first, second] = documents;
  if (second !== undefined)
    report(
      second.range[0],
      "The file holds several documents, separated by `---`.",
      "Put each of them into a file of its own.",
    );
  // After an error of the syntax, what was parsed is not what was written.
  const isParsed = documents.every(({ errors }) => errors.length === 0);
  const root = convertedNode(isParsed ? (first?.contents ?? null) : null, report);
  if (problems.length > 0) throw new ManifestError(distinct(problems).toSorted(byPosition));
  return {
    file,
    content: root.value,
    positionOf: (path) => {
      let place: Converted | undefined = root;
      for (const key of path) place = place?.children?.get(String(key));
      if (place === undefined) return undefined;
      const { line, col } = lines.linePos(place.offset);
      return { line, column: col };
    },
  };
}

/** Editors on Windows begin a file with a byte order mark, which is no character of its text. */
function withoutMark(text: string): string {
  return text.startsWith("\uFEFF") ? text.slice(1) : text;
}

/** An error of the parser as a sentence. */
function sentenceOf({ code, message }: YAMLError): string {
  if (code === "NON_STRING_KEY") return "A key must be a text.";
  if (code === "RESOURCE_EXHAUSTION") return "The file is nested too deeply.";
  return message.endsWith(".") ? message : `${message}.`;
}

/** The parser says some things once for each level that they end. */
function distinct(problems: readonly ManifestProblem[]): readonly ManifestProblem[] {
  return [...new Map(problems.map((problem) => [formatProblem(problem), problem])).values()];
}

function byPosition(left: ManifestProblem, right: ManifestProblem): number {
  return left.line! - right.line! || left.column! - right.column!;
}
