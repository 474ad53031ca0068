import { formatProblem, type ManifestDocument, type ManifestProblem } from "zae-limiter/manifest";

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
  problem(property: string, message: string, suggestion?: string): void {
    const line = this.#names.push(property);
    this.#problems.push({ file: FILE, line, column: 1, path: property, message, suggestion });
  }

  /** Notes what is wrong with the text of a file. */
  addProblems(problems: readonly ManifestProblem[]): void {
    this.#problems.push(...problems);
  }

  /** A document of a manifest that was made from properties. */
  document(content: unknown): ManifestDocument {
    const positionOf: ManifestDocument["positionOf"] = (path) => {
      const line = this.#lines.get(JSON.stringify(path));
      return line === undefined ? undefined : { line, column: 1 };
    };
    return { file: FILE, content, positionOf };
  }

  /** One line about a problem, in the words of a template. */
  format(problem: ManifestProblem): string {
    const { file, path, message, suggestion } = problem;
    const text = formatProblem(
      file === FILE
        ? {
            ...problem,
            // The name of the property already says where.
            message: message.replace(`Invalid ${path || "manifest"}: `, ""),
            suggestion: suggestion?.replaceAll(/(?<=`)[a-z_]+(?=: )/g, pascalCase),
          }
        : problem,
    );
    return text.replaceAll(/\bProperties:(\d+):1\b/g, (_, line) => {
      return `${FILE}.${this.#names[Number(line) - 1]}`;
    });
  }
}

/** The property of a key: `RefillAmount` of `refill_amount`. */
function pascalCase(key: string): string {
  return key.replaceAll(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase());
}
