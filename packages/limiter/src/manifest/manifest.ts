import { createHash } from "node:crypto";
import { isRecord } from "../core/amounts.ts";
import { checkOnUnavailable } from "../core/bucket/policy.ts";
import { ValidationError } from "../core/errors.ts";
import { namespaceName, resourceName } from "../core/identifiers.ts";
import type { Limit } from "../core/limit.ts";
import { nearest } from "../core/options.ts";
import { checkRetentionDays } from "../core/usage.ts";
import type { DeclaredLimits, DeclaredSystem } from "../repository/declared-limits.ts";
import {
  distinct,
  DocumentValue,
  adviseName,
  problemAt,
  type KnownKeys,
  type ManifestDocument,
} from "./document.ts";
import { ManifestError, type ManifestProblem } from "./problems.ts";
import { readEntities, readResources } from "./read-entities.ts";
import { adviseNumber, readBoolean, readLimits } from "./read-limits.ts";

/** Limits of one namespace, read from one or more documents and checked. */
export interface Manifest {
  /** The namespace of all its documents. */
  readonly namespace: string;
  /** The declared limits. */
  readonly declared: DeclaredLimits;
  /** A hash of the declared limits: equal for equal content, whatever the order of its keys. */
  readonly hash: string;
  /**
   * A problem at a place of the manifest, with its file and position.
   * @example
   * manifest.problemAt(["entities", "key-1", "parent"], "The stored parent is project-1.");
   */
  problemAt(path: readonly string[], message: string, suggestion?: string): ManifestProblem;
}

const SECTIONS: readonly string[] = ["namespace", "system", "resources", "entities"];

/** A place for anchors, as in Compose files. */
const IGNORED = "x-";

const MANIFEST: KnownKeys = {
  owner: "a manifest",
  // Editors read `$schema` in JSON files.
  keys: [...SECTIONS, "$schema"],
  ignored: IGNORED,
};

const SYSTEM: KnownKeys = {
  owner: "the system level",
  keys: ["limits", "inherit", "on_unavailable", "audit_retention_days", "usage_retention_days"],
  advice: "Write limits under `limits`.",
};

/**
 * Reads documents as one manifest and checks all of it. Throws `ManifestError` with every problem.
 * @example const manifest = readManifest([yamlDocument("limits.yaml", text)]);
 */
export function readManifest(documents: readonly ManifestDocument[]): Manifest {
  if (documents.length === 0)
    throw new ValidationError("documents", documents, "must hold at least one document");
  const problems = new Map(documents.map((document) => [document, [] as ManifestProblem[]]));
  const roots = documents.map((document) => new DocumentValue(document, problems.get(document)!));
  const fields = roots.map(readRoot);
  const section = (name: string): readonly DocumentValue[] =>
    fields.flatMap((ofRoot) => ofRoot?.filter(({ key }) => key === name) ?? []);
  // A file that cannot be read at all may be the one that has the namespace.
  if (section("namespace").length === 0 && !fields.includes(undefined))
    roots[0]?.refuse("must name its namespace", NAMESPACE_ADVICE);
  const namespace = readNamespace(section("namespace"));
  const system = readSystem(section("system"));
  const declared: DeclaredLimits = {
    ...(system !== undefined && { system }),
    resources: readResources(section("resources"), resourceName),
    entities: readEntities(section("entities")),
  };
  const found = [...problems.values()].flatMap((ofDocument) => ofDocument.toSorted(byPosition));
  if (namespace === undefined || found.length > 0) throw new ManifestError(found);
  return {
    namespace,
    declared,
    hash: createHash("sha256").update(canonical(declared)).digest("hex"),
    problemAt: (path, message, suggestion) =>
      problemAt(findDocument(documents, path), path, message, suggestion),
  };
}

const NAMESPACE_ADVICE = "Write `namespace: default`, or another name.";

function readRoot(root: DocumentValue): readonly DocumentValue[] | undefined {
  if (root.value === null || root.value === undefined)
    root.refuse("the file is empty", "Write at least `namespace: default`, or leave the file out.");
  else if (isOtherFile(root.value))
    root.refuse(
      `it has none of the keys of a manifest, which are ${SECTIONS.join(", ")}`,
      "If it is not a manifest, keep it in another folder, or name each file of the manifest.",
    );
  else return root.fields(MANIFEST);
  return undefined;
}

/** Whether a file is something else, such as a package.json: few of its keys look like ours. */
function isOtherFile(content: unknown): boolean {
  const keys = isRecord(content) ? Object.keys(content) : [];
  if (keys.some((key) => SECTIONS.includes(key) || key.startsWith(IGNORED))) return false;
  const mistyped = keys.filter((key) => nearest(key, MANIFEST.keys) !== undefined);
  return mistyped.length * 2 <= keys.length && keys.length > 0;
}

function readNamespace(values: readonly DocumentValue[]): string | undefined {
  const [first, ...others] = values;
  const name = first?.check(
    (value) => namespaceName(value),
    adviseName((value) => namespaceName(value), NAMESPACE_ADVICE),
  );
  for (const other of others) {
    if (other.value === first!.value) continue;
    const reason = `differs from that at ${first!.place}`;
    other.refuse(reason, "Files that are read together are about one namespace.", other.value);
  }
  return name;
}

function readSystem(sections: readonly DocumentValue[]): DeclaredSystem | undefined {
  const fields = distinct(sections.flatMap((section) => section.fields(SYSTEM) ?? []));
  const limitsField = fields.get("limits");
  const limits = limitsField && readLimits(limitsField);
  const inheritField = fields.get("inherit");
  const inherit = inheritField && readBoolean(inheritField);
  if (inheritField !== undefined && limitsField === undefined)
    inheritField.refuse("belongs to limits", "Declare limits beside it, or leave it out.");
  const onUnavailable = fields
    .get("on_unavailable")
    // As in Python's manifests, null means: not declared.
    ?.check(
      (value) => (value === null ? undefined : checkOnUnavailable(value)),
      (wrong) => adviseWord(wrong, ["allow", "block"]),
    );
  const auditRetentionDays = readDays(fields.get("audit_retention_days"));
  const usageRetentionDays = readDays(fields.get("usage_retention_days"));
  const system = {
    ...(limits !== undefined && { limits }),
    ...(inherit === false && { inherit }),
    ...(onUnavailable !== undefined && { onUnavailable }),
    ...(auditRetentionDays !== undefined && { auditRetentionDays }),
    ...(usageRetentionDays !== undefined && { usageRetentionDays }),
  };
  return Object.keys(system).length === 0 ? undefined : system;
}

function readDays(value: DocumentValue | undefined): number | undefined {
  return value?.check(
    (days) => checkRetentionDays(days, value.key),
    (wrong) => adviseNumber(wrong, "Write a whole number of days, such as 90, or leave it out."),
  );
}

function adviseWord(wrong: unknown, known: readonly string[]): string {
  const meant = typeof wrong === "string" ? nearest(wrong, known) : undefined;
  return meant === undefined
    ? `Write ${known.join(" or ")}, or leave it out.`
    : `Did you mean ${meant}?`;
}

function byPosition(left: ManifestProblem, right: ManifestProblem): number {
  return (left.line ?? 0) - (right.line ?? 0) || (left.column ?? 0) - (right.column ?? 0);
}

/** The same text for the same content: keys sorted, and limits by name. */
function canonical(declared: DeclaredLimits): string {
  return JSON.stringify(declared, (_, value: unknown) => {
    if (Array.isArray(value))
      return (value as readonly Limit[]).toSorted((left, right) => order(left.name, right.name));
    if (!isRecord(value)) return value;
    return Object.fromEntries(
      Object.entries(value).toSorted(([left], [right]) => order(left, right)),
    );
  });
}

function order(left: string, right: string): number {
  return left < right ? -1 : Number(left > right);
}

/** Returns the document that has a path, or most of it. */
function findDocument(
  documents: readonly ManifestDocument[],
  path: readonly string[],
): ManifestDocument {
  const depths = documents.map(({ content }) => countDepth(content, path));
  return documents[depths.indexOf(Math.max(...depths))]!;
}

/** Counts the leading keys of a path that exist in a value. */
function countDepth(content: unknown, path: readonly string[]): number {
  let value = content;
  for (const [depth, key] of path.entries()) {
    if (!isRecord(value) || !Object.hasOwn(value, key)) return depth;
    value = value[key];
  }
  return path.length;
}
