import type { ManifestDocument, ManifestProblem } from "zae-limiter/manifest";

/** How messages name the properties of a resource. */
const FILE = "Properties";

/** A document without positions. */
export function plainDocument(file: string, content: unknown): ManifestDocument {
  return { file, content, positionOf: () => undefined };
}

/**
 * What the values of a manifest are called as properties of a resource. Properties have no lines:
 * the line of one is its number here, which leads from a problem back to its name.
 */
export class PropertyNames {
  readonly #names: string[] = [];
  readonly #lines = new Map<string, number>();
  readonly #problems: ManifestProblem[] = [];

  /** How messages name the property with the text of a file, which has lines of its own. */
  readonly ofManifest = `${FILE}.Manifest`;

  /** What is wrong with the properties, apart from the manifest that they make. */
  get problems(): readonly ManifestProblem[] {
    return this.#problems;
  }

  /** Notes what the value at a path is called. */
  add(path: readonly string[], property: string): void {
    this.#lines.set(JSON.stringify(path), this.#names.push(property));
  }

  /** Notes what is wrong with a property. */
  problem(property: string, message: string, suggestion: string | undefined): void {
    const line = this.#names.push(property);
    this.#problems.push({ file: FILE, line, column: 1, path: property, message, suggestion });
  }

  /** Notes what is wrong with the text of a file. */
  addProblems(problems: readonly ManifestProblem[]): void {
    this.#problems.push(...problems);
  }

  /** A document of a manifest that was made from properties. */
  document(content: unknown): ManifestDocument {
    return { file: FILE, content, positionOf: (path) => this.#positionOf(path) };
  }

  /** Where something is wrong, as somebody finds it in a template. */
  placeOf({ file, line, column, path }: ManifestProblem): string {
    if (file !== FILE) return line === undefined ? file : `${file}:${line}:${column ?? 1}`;
    const name = line === undefined ? path : this.#names[line - 1];
    return name ? `${FILE}.${name}` : FILE;
  }

  /** That of the value, or of the nearest one around it that was given. */
  #positionOf(path: readonly (string | number)[]): { line: number; column: number } | undefined {
    for (let length = path.length; length > 0; length -= 1) {
      const line = this.#lines.get(JSON.stringify(path.slice(0, length)));
      if (line !== undefined) return { line, column: 1 };
    }
    return undefined;
  }
}
