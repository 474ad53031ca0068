import * as fc from "fast-check";
import { Limit, type Repository } from "zae-limiter";
import { MemoryRepository } from "zae-limiter/memory";
import { expect, it } from "vitest";
import { ALL_RESOURCES, findHiddenLimits, policyInForce, type Scope } from "./policy.ts";

const RESOURCES = ["gpt-4", "gpt-5"] as const;
const ENTITY = "key-1";

const names = fc.uniqueArray(fc.constantFrom("rpm", "tpm", "rpd"), { minLength: 1 });
const level = fc.option(fc.record({ names, inherit: fc.boolean() }), { nil: undefined });
type Level = { readonly names: readonly string[]; readonly inherit: boolean } | undefined;

const stored = fc.record({
  entity: level,
  entityDefault: level,
  resources: fc.tuple(level, level),
  system: level,
});

const scope: fc.Arbitrary<Scope> = fc.oneof(
  fc.record({ entityId: fc.constant(ENTITY), resource: fc.constantFrom(ALL_RESOURCES, "gpt-4") }),
  fc.record({ resource: fc.constant("gpt-4") }),
);

it("names exactly the limits that the library no longer applies if a list replaces", async () => {
  await fc.assert(
    fc.asyncProperty(stored, scope, names, async (levels, target, list) => {
      const repository = new MemoryRepository();
      await store(repository, levels);
      const hidden = await findHiddenLimits(repository, target, list);
      await set(repository, target, { names: list, inherit: true });
      const kept = await inForce(repository, target);
      await set(repository, target, { names: list, inherit: false });
      const left = await inForce(repository, target);
      const lost = new Set(kept.filter((name) => !left.includes(name)).map(getLimitName));
      expect(new Set(hidden.map(({ limit }) => limit.name))).toEqual(lost);
    }),
    { numRuns: 200 },
  );
});

async function store(
  repository: Repository,
  {
    entity,
    entityDefault,
    resources,
    system,
  }: {
    readonly entity: Level;
    readonly entityDefault: Level;
    readonly resources: readonly Level[];
    readonly system: Level;
  },
): Promise<void> {
  if (system !== undefined) await repository.setSystemDefaults(buildLimits(system.names));
  await set(repository, { entityId: ENTITY, resource: "gpt-4" }, entity);
  await set(repository, { entityId: ENTITY, resource: ALL_RESOURCES }, entityDefault);
  for (const [index, resource] of RESOURCES.entries())
    await set(repository, { resource }, resources[index]);
}

async function set(
  repository: Repository,
  { entityId, resource }: Scope,
  chosen: Level,
): Promise<void> {
  if (chosen === undefined) return;
  const limits = buildLimits(chosen.names);
  const { inherit } = chosen;
  if (entityId === undefined) await repository.setResourceDefaults(resource, limits, { inherit });
  else await repository.setLimits(entityId, limits, { resource, inherit });
}

/** The limits in force in a scope, each with the resource that it is in force on. */
async function inForce(repository: Repository, { entityId, resource }: Scope): Promise<string[]> {
  const resources = resource === ALL_RESOURCES ? [ALL_RESOURCES, ...RESOURCES] : [resource];
  const found: string[] = [];
  for (const each of resources) {
    const policy = await policyInForce(repository, {
      resource: each,
      ...(entityId !== undefined && { entityId }),
    });
    found.push(...policy.map(({ limit }) => `${each} ${limit.name}`));
  }
  return found;
}

function buildLimits(chosen: readonly string[]): readonly Limit[] {
  return chosen.map((name) => Limit.perMinute(name, 1));
}

function getLimitName(text: string): string {
  return text.split(" ")[1]!;
}
