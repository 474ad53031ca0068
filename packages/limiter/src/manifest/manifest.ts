import type { DeclaredLimits } from "../repository/declared-limits.ts";
import type { ManifestProblem } from "./problems.ts";

/** A place in a file; both from 1. */
export interface Position {
  readonly line: number;
  readonly column: number;
}

/** One parsed file of a manifest: YAML, JSON, or the properties of a resource. */
export interface ManifestDocument {
  /** How messages name it. */
  readonly file: string;
  /** What the file contains, as plain values. */
  readonly content: unknown;
  /**
   * Where a value stands, or the key of one in a map. Undefined if that is unknown.
   * @example document.positionOf(["resources", "gpt-4", "limits"]); // { line: 3, column: 5 }
   */
  positionOf(path: readonly (string | number)[]): Position | undefined;
}

/** Limits of one namespace, read from one or more documents and checked. */
export interface Manifest {
  /** The namespace that all of its documents are about. */
  readonly namespace: string;
  /** What it declares. */
  readonly declared: DeclaredLimits;
  /** A hash of what it declares: the same for the same content, whatever the order of its keys. */
  readonly hash: string;
  /**
   * A problem at a place of the manifest, with its file and position.
   * @example manifest.problemAt(["entities", "key-1", "parent"], "The stored parent is project-1.");
   */
  problemAt(path: readonly string[], message: string, suggestion?: string): ManifestProblem;
}

/**
 * Reads documents as one manifest and checks all of it. Throws `ManifestError` with everything that
 * is wrong.
 * @example const manifest = readManifest([yamlDocument("limits.yaml", text)]);
 */
export function readManifest(documents: readonly ManifestDocument[]): Manifest {
  throw new Error(`not built yet: ${documents.length}`);
}
