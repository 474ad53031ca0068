import {
  LineCounter,
  parseDocument,
  type Alias,
  type Document,
  type Node,
  type ScalarTag,
  type YAMLError,
} from "yaml";
import {
  formatProblem,
  ManifestError,
  type ManifestDocument,
  type ManifestProblem,
} from "zae-limiter/manifest";
import { findOffset, resolveAliases, type Report } from "./aliases.ts";
import { syntaxAdvice } from "./syntax-advice.ts";

/**
 * Parses a file of a manifest, YAML 1.2 or JSON, and remembers where its values stand. Throws
 * `ManifestError` with every error of its syntax.
 * @example const manifest = readManifest([yamlDocument("limits.yaml", text)]);
 */
export function yamlDocument(file: string, text: string): ManifestDocument {
  const lines = new LineCounter();
  const problems: ManifestProblem[] = [];
  const report: Report = (offset, message, suggestion) => {
    const { line, col } = lines.linePos(offset);
    problems.push({ file, line, column: col, path: "", message, suggestion });
  };
  const document = parseDocument(withoutMark(text), {
    lineCounter: lines,
    prettyErrors: false,
    // Also if a directive asks for YAML 1.1, where `no` is a boolean.
    schema: "core",
    merge: true,
    customTags: (tags) => [GROUPED_DIGITS, ...tags],
    // Keys as they are written: an entity 007 is not the entity 7.
    stringKeys: true,
    // Dates, sets and binary values are not part of a manifest.
    resolveKnownTags: false,
  });
  const { errors, warnings, contents } = document;
  for (const error of [...errors, ...warnings])
    report(error.pos[0], toSentence(error), syntaxAdvice(error.code, error.message));
  // After an error of the syntax, what was parsed is not what was written.
  const targets = errors.length === 0 ? resolveAliases(document, report) : new Map<Alias, Node>();
  const content = problems.length === 0 ? toContent(document, report) : undefined;
  if (problems.length > 0) throw new ManifestError(distinct(problems).toSorted(byPosition));
  return {
    file,
    content,
    findPosition: (path) => {
      const offset = findOffset(contents, path, targets);
      if (offset === undefined) return undefined;
      const { line, col } = lines.linePos(offset);
      return { line, column: col };
    },
  };
}

/** YAML 1.1, which Python reads, has `10_000` for 10000. With a leading zero it means octal. */
const GROUPED_DIGITS: ScalarTag = {
  tag: "tag:yaml.org,2002:int",
  default: true,
  test: /^[-+]?[1-9]\d*(?:_\d+)+$/,
  resolve: (text) => Number(text.replaceAll("_", "")),
};

/**
 * Most uses of one alias; one within an alias counts as often as that is used. Ten thousand
 * entities that share the limits of two resources need a third of it; aliases of aliases of aliases
 * exceed it at once.
 */
const MOST_ALIASED = 100_000;

/** The values of a document in the types of JSON. */
function toContent(document: Document, report: Report): unknown {
  try {
    return document.toJS({ maxAliasCount: MOST_ALIASED });
  } catch (error) {
    // This is how the package says that there are too many aliases.
    if (!(error instanceof ReferenceError)) throw error;
    report(
      0,
      `An alias is used more than ${MOST_ALIASED} times.`,
      "Write fewer aliases, or several files.",
    );
    return undefined;
  }
}

/** Editors on Windows begin a file with a byte order mark, which is not a character of its text. */
function withoutMark(text: string): string {
  return text.startsWith("\uFEFF") ? text.slice(1) : text;
}

/** An error of the parser as a sentence. */
function toSentence({ code, message }: YAMLError): string {
  if (code === "NON_STRING_KEY") return "A key must be a text.";
  if (code === "DUPLICATE_KEY") return "This key appears twice in one map.";
  if (code === "MULTIPLE_DOCS") return "The file holds several documents, separated by `---`.";
  if (code === "RESOURCE_EXHAUSTION") return "The file is nested too deeply.";
  return message.endsWith(".") ? message : `${message}.`;
}

/** The parser reports some errors once for each level that they close. */
function distinct(problems: readonly ManifestProblem[]): readonly ManifestProblem[] {
  return [...new Map(problems.map((problem) => [formatProblem(problem), problem])).values()];
}

function byPosition(left: ManifestProblem, right: ManifestProblem): number {
  return left.line! - right.line! || left.column! - right.column!;
}
