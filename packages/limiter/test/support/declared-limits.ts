import * as fc from "fast-check";
import type { DeclaredEntity, DeclaredLevel, DeclaredLimits, Repository } from "zae-limiter";
import { validLimit } from "./arbitraries.ts";

const LIMIT_NAMES = ["rpm", "tpm", "constructor", "a.b-c_d"];
const RESOURCES = ["gpt-4", "constructor", "no", "a/b:c", "Z"];
const IDS = ["acme", "123", "1e3", "12:30:45", "yes", "user@example.com", "null", "2001-01-01"];

/** Everything that a manifest can declare. Parents are declared too, and there are no circles. */
export function declaredLimits(): fc.Arbitrary<DeclaredLimits> {
  return fc.record(
    {
      system: withSome({
        limits: limits(),
        onUnavailable: fc.constantFrom("allow", "block"),
        auditRetentionDays: fc.integer({ min: 1, max: 3650 }),
        usageRetentionDays: fc.integer({ min: 1, max: 3650 }),
      }),
      resources: fc.dictionary(fc.constantFrom(...RESOURCES), level()),
      entities: fc.uniqueArray(fc.constantFrom(...IDS)).chain(entities),
    },
    { requiredKeys: ["resources", "entities"] },
  );
}

/** Stores by hand what a declaration says. */
export async function store(repository: Repository, declared: DeclaredLimits): Promise<void> {
  const { limits: ofSystem, ...settings } = declared.system ?? {};
  if (ofSystem !== undefined) await repository.setSystemDefaults(ofSystem, settings);
  else if (declared.system !== undefined)
    await repository.namespace(repository.namespaceName, settings);
  for (const [resource, { limits: list, inherit }] of Object.entries(declared.resources))
    await repository.setResourceDefaults(resource, list, { inherit });
  const names = Object.keys(declared.entities);
  const parents = new Set(names.map((id) => declared.entities[id]!.parentId));
  for (const id of byDepth(declared)) {
    const { resources, ...record } = declared.entities[id]!;
    const isDeclared = Object.keys(record).length > 0 || Object.keys(resources).length === 0;
    if (isDeclared || parents.has(id)) await repository.createEntity(id, record);
    for (const [resource, { limits: list, inherit }] of Object.entries(resources))
      await repository.setLimits(id, list, { resource, inherit });
  }
}

function limits(): fc.Arbitrary<DeclaredLevel["limits"]> {
  return fc
    .uniqueArray(fc.constantFrom(...LIMIT_NAMES), { minLength: 1 })
    .chain((names) => fc.tuple(...names.map((name) => validLimit(name))));
}

function level(): fc.Arbitrary<DeclaredLevel> {
  return fc.record({ limits: limits(), inherit: fc.boolean() });
}

/** Any of the fields, at least one. */
function withSome(fields: Record<string, fc.Arbitrary<unknown>>): fc.Arbitrary<object> {
  return fc.record(fields, { requiredKeys: [] }).filter((value) => Object.keys(value).length > 0);
}

function entities(ids: readonly string[]): fc.Arbitrary<DeclaredLimits["entities"]> {
  const each = ids.map((_, index) => entity(ids.slice(0, index)));
  return fc
    .tuple(...each)
    .map((values) => Object.fromEntries(values.map((value, index) => [ids[index]!, value])));
}

function entity(parents: readonly string[]): fc.Arbitrary<DeclaredEntity> {
  const text = fc.oneof(
    fc.constantFrom("yes", "1.0", "a: b", " # ", "'", '"', "\t", "a\nb", "\u0085", "😀"),
    fc.string({ minLength: 1, unit: "grapheme" }),
  );
  return fc.record(
    {
      name: text,
      cascade: fc.boolean(),
      metadata: fc.dictionary(fc.oneof(text, fc.constant("__proto__")), text, { maxKeys: 3 }),
      ...(parents.length > 0 && { parentId: fc.constantFrom(...parents) }),
      resources: fc.dictionary(fc.constantFrom("_default_", ...RESOURCES), level(), { maxKeys: 3 }),
    },
    { requiredKeys: ["resources"] },
  );
}

/** Parents before their children. */
function byDepth({ entities: declared }: DeclaredLimits): readonly string[] {
  const depth = (id: string): number => {
    const { parentId } = declared[id]!;
    return parentId === undefined ? 0 : 1 + depth(parentId);
  };
  return Object.keys(declared).toSorted((left, right) => depth(left) - depth(right));
}
