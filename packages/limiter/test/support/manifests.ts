import { createHash } from "node:crypto";
import type { DeclaredLimits, Entity, ProvisionerState } from "zae-limiter";
import { noProvisionerState } from "../../src/repository/management/records.ts";
import { diffLimits, type Manifest, type PlanEntry, type StoredLimits } from "zae-limiter/manifest";

/** A manifest that was never a file. */
export function manifestFor(declared: Partial<DeclaredLimits>, namespace = "default"): Manifest {
  const content = whole(declared);
  return {
    namespace,
    declared: content,
    hash: createHash("sha256").update(sortedText(content)).digest("hex"),
    problemAt: (path, message, suggestion) => ({
      file: "limits.yaml",
      line: 1,
      column: 1,
      path: path.join("."),
      message,
      suggestion,
    }),
  };
}

/** The diff of what is given; everything else is empty. */
export function computeDiff({
  declared = {},
  stored = {},
  state = {},
}: {
  readonly declared?: Partial<DeclaredLimits>;
  readonly stored?: Partial<StoredLimits>;
  readonly state?: Partial<ProvisionerState>;
}): readonly PlanEntry[] {
  return diffLimits(
    whole(declared),
    { system: {}, resources: {}, entities: {}, ...stored },
    { ...noProvisionerState(), ...state },
  );
}

/** A declaration of what is given. */
export function whole(declared: Partial<DeclaredLimits>): DeclaredLimits {
  return { resources: {}, entities: {}, ...declared };
}

/** The record of an entity. */
export function record(id: string, fields: Partial<Entity> = {}): Entity {
  return {
    id,
    name: id,
    parentId: undefined,
    cascade: false,
    metadata: {},
    createdAt: new Date(0),
    ...fields,
  };
}

/** The same for the same content, whatever the order of its keys and limits. */
function sortedText(value: unknown): string {
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "";
  if (Array.isArray(value)) return `[${value.map(sortedText).sort().join()}]`;
  const entries = Object.entries(value).map(([key, inner]) => `${key}:${sortedText(inner)}`);
  return `{${entries.sort().join()}}`;
}
