import type { ManifestDocument } from "../../src/manifest/document.ts";
import { readManifest, type Manifest } from "../../src/manifest/manifest.ts";
import { formatProblem, ManifestError, type ManifestProblem } from "../../src/manifest/problems.ts";

/** A manifest of the system limits. */
export function getSystem(limits: object): Record<string, unknown> {
  return { namespace: "a", system: { limits } };
}

/** A manifest of the entity key-1. */
export function getEntity(entity: object): Record<string, unknown> {
  return { namespace: "a", entities: { "key-1": entity } };
}

/** Reads each content as a file: 0.yaml, 1.yaml. */
export function read(...contents: readonly unknown[]): Manifest {
  return readManifest(contents.map((content, index) => document(`${index}.yaml`, content)));
}

/** A document whose positions are the depth of a path, and the length of its last key. */
function document(file: string, content: unknown): ManifestDocument {
  return {
    file,
    content,
    findPosition: (path) => ({
      line: path.length + 1,
      column: String(path.at(-1) ?? "").length + 1,
    }),
  };
}

/** Every problem in one line, without its place. */
export function listLines(...contents: readonly unknown[]): readonly string[] {
  return listProblems(...contents).map((problem) =>
    formatProblem(problem).replace(/^\S+ Invalid /, ""),
  );
}

/** Everything that is wrong with contents. */
export function listProblems(...contents: readonly unknown[]): readonly ManifestProblem[] {
  try {
    read(...contents);
  } catch (error) {
    if (error instanceof ManifestError) return error.problems;
    throw error;
  }
  return [];
}

/** What reading contents throws. */
export function catchError(...contents: readonly unknown[]): ManifestError {
  try {
    read(...contents);
  } catch (error) {
    if (error instanceof ManifestError) return error;
  }
  throw new Error("The manifest is valid.");
}
