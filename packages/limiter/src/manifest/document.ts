import { isRecord } from "../core/amounts.ts";
import { ValidationError } from "../core/errors.ts";
import { nearest } from "../core/options.ts";
import { formatPlace, type ManifestProblem } from "./problems.ts";

/** A place in a file. */
export interface Position {
  /** From 1. */
  readonly line: number;
  /** From 1, in UTF-16 code units. */
  readonly column: number;
}

/** One parsed file of a manifest: YAML, JSON, or the properties of a resource. */
export interface ManifestDocument {
  /** Its name in messages. */
  readonly file: string;
  /** What the file contains, as plain values. */
  readonly content: unknown;
  /**
   * Where a key of a map stands, or an entry of a list. Undefined if that is unknown.
   * @example document.findPosition(["resources", "gpt-4", "limits"]); // { line: 3, column: 5 }
   */
  findPosition(path: readonly (string | number)[]): Position | undefined;
}

/** What a map may contain, for messages. */
export interface KnownKeys {
  /** What has the keys: "a limit". */
  readonly owner: string;
  readonly keys: readonly string[];
  /** The prefix of keys that are allowed and ignored. */
  readonly ignored?: string;
  /** The advice for a key that resembles none of them. @default the list of keys */
  readonly advice?: string;
  /** The advice for keys that people expect here. */
  readonly expected?: ReadonlyMap<string, string>;
}

/** Returns the advice for a refused value. Every problem contains it. */
export type Suggest = (wrong: unknown) => string;

/** A value of a document, with its position and the list that collects problems. */
export class DocumentValue {
  readonly value: unknown;
  readonly #document: ManifestDocument;
  readonly #path: readonly string[];
  readonly #problems: ManifestProblem[];

  constructor(
    document: ManifestDocument,
    problems: ManifestProblem[],
    value: unknown = document.content,
    path: readonly string[] = [],
  ) {
    this.value = value;
    this.#document = document;
    this.#path = path;
    this.#problems = problems;
  }

  /** The key of the value. */
  get key(): string {
    return this.#path.at(-1) ?? "";
  }

  /** Its position: `file:line:column`. */
  get place(): string {
    return formatPlace(problemAt(this.#document, this.#path, ""));
  }

  /**
   * The entries of a map; none for null, which is how YAML reads a key with nothing below. If the
   * value is not a map, reports a problem and returns undefined.
   */
  entries(of: string): readonly DocumentValue[] | undefined {
    if (this.value === null) return [];
    if (isRecord(this.value)) return listEntries(this.value).map((entry) => this.#child(...entry));
    this.refuse(`must be a map ${of}`, adviseMap(this.value), this.value);
    return undefined;
  }

  /** The entries of a map whose keys are known. Any other key is ignored or a problem. */
  fields(known: KnownKeys): readonly DocumentValue[] | undefined {
    const { owner, keys, ignored } = known;
    return this.entries(`with the keys ${keys.join(", ")}`)?.filter((field) => {
      if (keys.includes(field.key)) return true;
      if (ignored !== undefined && field.key.startsWith(ignored)) return false;
      field.refuse(`is not a key of ${owner}`, adviseKey(field.key, known));
      return false;
    });
  }

  /** Whether a map has other keys than these. */
  hasUnknown({ keys }: KnownKeys): boolean {
    return isRecord(this.value) && listEntries(this.value).some(([key]) => !keys.includes(key));
  }

  /** Returns what a check of the core returns. If that throws, reports a problem instead. */
  check<Checked>(check: (value: unknown) => Checked, suggest: Suggest): Checked | undefined {
    return this.#checkValue(this.value, check, suggest);
  }

  /** The same for the key, which is a name. */
  checkKey<Checked>(
    check: (key: unknown) => Checked,
    suggest: Suggest = adviseName(check),
  ): Checked | undefined {
    return this.#checkValue(this.key, check, suggest);
  }

  /** Reports that the value is wrong. The message repeats `got`, if there is one. */
  refuse(reason: string, suggestion: string, got?: unknown): void {
    const { message } = new ValidationError(pathText(this.#path), got, reason);
    this.#problems.push(problemAt(this.#document, this.#path, `${message}.`, suggestion));
  }

  #child(key: string, value: unknown): DocumentValue {
    return new DocumentValue(this.#document, this.#problems, value, [...this.#path, key]);
  }

  #checkValue<Checked>(
    value: unknown,
    check: (value: unknown) => Checked,
    suggest: Suggest,
  ): Checked | undefined {
    try {
      return check(value);
    } catch (error) {
      if (!(error instanceof ValidationError)) throw error;
      this.refuse(error.reason, suggest(value), value);
      return undefined;
    }
  }
}

/** Suggests a name for one that a check refuses; `otherwise` if it is not a text. */
export function adviseName(
  check: (name: unknown) => unknown,
  otherwise = "Write a name of letters, digits and hyphens.",
): Suggest {
  const isValid = (name: string): boolean => {
    try {
      check(name);
      return true;
    } catch {
      return false;
    }
  };
  return (wrong) => {
    const isText = typeof wrong === "string";
    if (!isText && typeof wrong !== "number" && typeof wrong !== "boolean") return otherwise;
    const text = String(wrong);
    if (!isText && isValid(text)) return IN_QUOTES;
    // The characters that some names may have, then those that all may have.
    const spelled = [/[^\w.:@/-]+/g, /[^\w.-]+/g].map((others) =>
      text.replaceAll(others, "-").replaceAll(/^[^A-Za-z0-9]+|-+$/g, ""),
    );
    if (spelled.includes("")) return otherwise;
    const valid = spelled.flatMap((name) => [name, `x-${name}`]).find(isValid);
    return valid === undefined ? "Shorten it." : `Write ${valid}, for example.`;
  };
}

/** YAML reads 2024, true and 007 as numbers and truth values. */
export const IN_QUOTES = "Write it in quotes.";

function adviseMap(wrong: unknown): string {
  if (Array.isArray(wrong)) return "Write `name: …`, not `- …`.";
  return typeof wrong === "string" && /^[^\s:]+:\S/.test(wrong)
    ? "Write a space after the colon."
    : "Write `name: …` below it, indented.";
}

function adviseKey(key: string, { keys, advice, expected }: KnownKeys): string {
  const meant = nearest(key, keys);
  return (
    expected?.get(key) ??
    (meant === undefined ? (advice ?? `Known are ${keys.join(", ")}.`) : `Did you mean ${meant}?`)
  );
}

/** The entries by key. A repeated key is a problem, which names both places. */
export function distinct(values: readonly DocumentValue[]): ReadonlyMap<string, DocumentValue> {
  const byKey = new Map<string, DocumentValue>();
  for (const value of values) {
    const first = byKey.get(value.key);
    if (first === undefined) byKey.set(value.key, value);
    else value.refuse(`is declared twice, first at ${first.place}`, "Declare it in one place.");
  }
  return byKey;
}

/** A problem at a place of a document, or of the nearest value around it whose place is known. */
export function problemAt(
  document: ManifestDocument,
  path: readonly string[],
  message: string,
  suggestion?: string,
): ManifestProblem {
  let position: Position | undefined;
  for (let length = path.length; position === undefined && length >= 0; length -= 1)
    position = document.findPosition(path.slice(0, length));
  return {
    file: document.file,
    line: position?.line,
    column: position?.column,
    path: path.join("."),
    message,
    suggestion,
  };
}

/**
 * The entries of a map. Undefined is not a value in a file; programs may use it for absent values.
 */
function listEntries(map: Readonly<Record<string, unknown>>): readonly [string, unknown][] {
  return Object.entries(map).filter(([, value]) => value !== undefined);
}

function pathText(path: readonly string[]): string {
  return path.length === 0 ? "manifest" : path.map((key) => key.slice(0, KEY_LENGTH)).join(".");
}

/** Most characters of a key that a message repeats. Names and ids have at most 256. */
const KEY_LENGTH = 256;
