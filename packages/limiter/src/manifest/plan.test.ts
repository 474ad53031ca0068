import { expect, it } from "vitest";
import { Limit, type DeclaredEntity, type Entity, type Repository } from "zae-limiter";
import { ManifestError, planLimits, type ManifestProblem } from "zae-limiter/manifest";
import { MemoryRepository } from "zae-limiter/memory";
import { manifestFor, record } from "../../test/support/manifests.ts";
import { pausedRepository } from "../../test/support/paused-repository.ts";

const RPM = Limit.perMinute("rpm", 100);

it("another parent than the stored one is an error, and so is an unknown one", async () => {
  const repository = new MemoryRepository();
  await repository.createEntity("acme");
  await repository.createEntity("umbrella");
  await repository.createEntity("key-1", { parentId: "acme" });
  await repository.createEntity("key-2");
  const problems = await listProblems(repository, {
    "key-1": { parentId: "umbrella", resources: {} },
    "key-2": { parentId: "acme", resources: {} },
    "key-3": { parentId: "missing", resources: {} },
    "key-4": { parentId: "acme", resources: {} },
    "key-5": { parentId: "declared", resources: {} },
    declared: { resources: { a: { limits: [RPM], inherit: true } } },
  });
  expect(problems.map(({ path, message }) => `${path}: ${message}`)).toEqual([
    "entities.key-1.parent: Entity 'key-1' is stored with the parent 'acme', which cannot be changed.",
    "entities.key-2.parent: Entity 'key-2' is stored without a parent, which cannot be changed.",
    "entities.key-3.parent: The parent 'missing' of entity 'key-3' is neither declared nor stored.",
  ]);
  expect(problems.map(({ suggestion }) => suggestion)).toEqual([
    "Declare the stored parent, or delete the entity and let it be created again.",
    "Leave `parent` out, or delete the entity and let it be created again.",
    "Declare it: missing: {}",
  ]);
});

it("errors are in the order of the manifest, not of parents and children", async () => {
  const repository = new MemoryRepository();
  await repository.createEntity("child");
  const problems = await listProblems(repository, {
    child: { parentId: "parent", resources: {} },
    parent: { parentId: "missing", resources: {} },
  });
  expect(problems.map(({ path }) => path)).toEqual([
    "entities.child.parent",
    "entities.parent.parent",
  ]);
});

it("the stored parent may be declared, or left out", async () => {
  const repository = new MemoryRepository();
  await repository.createEntity("acme");
  await repository.createEntity("key-1", { parentId: "acme", cascade: true });
  for (const entity of [{ parentId: "acme" }, { cascade: true }]) {
    const entities = { "key-1": { ...entity, resources: {} } };
    const { entries } = await planLimits(repository, manifestFor({ entities }));
    expect(entries.map(({ action }) => action)).toEqual(["unchanged"]);
  }
});

it("the stored parent may be declared even if it was deleted, so that exports can be planned", async () => {
  const repository = storing({ "key-1": record("key-1", { parentId: "gone" }) });
  const entities = { "key-1": { parentId: "gone", cascade: false, resources: {} } };
  const { entries } = await planLimits(repository, manifestFor({ entities }));
  expect(entries.map(({ action }) => action)).toEqual(["unchanged"]);
});

it("a new entity cannot become an ancestor of its stored parent", async () => {
  const repository = storing({
    middle: record("middle", { parentId: "top" }),
    other: record("other", { parentId: "other" }),
  });
  const problems = await listProblems(repository, {
    leaf: { parentId: "middle", resources: {} },
    middle: { resources: {} },
    stray: { parentId: "other", resources: {} },
    top: { parentId: "middle", resources: {} },
  });
  expect(problems).toMatchObject([
    { path: "entities.top.parent", suggestion: "Name another parent, or leave `parent` out." },
  ]);
});

it("reads the store, not the cache, and writes nothing", async () => {
  const repository = new MemoryRepository();
  await repository.setResourceDefaults("gpt-4", [RPM]);
  await repository.resolveLimits("key-1", "gpt-4");
  const stats = repository.getCacheStats();
  const level = { limits: [RPM], inherit: true };
  const { entries } = await planLimits(
    repository,
    manifestFor({ resources: { "gpt-4": level, search: level } }),
  );
  expect(entries.map(({ action }) => action)).toEqual(["unchanged", "create"]);
  expect(repository.getCacheStats()).toEqual(stats);
  expect((await repository.getProvisionerState()).revision).toBe(0);
});

it("entities are read in chunks, each level once", async () => {
  let underWay = 0;
  let most = 0;
  let reads = 0;
  const repository = pausedRepository(new MemoryRepository(), async (operation) => {
    if (operation !== "getLevel") return;
    most = Math.max(most, (underWay += 1));
    reads += 1;
    await Promise.resolve();
    underWay -= 1;
  });
  const level = { limits: [RPM], inherit: true };
  const entities = Object.fromEntries(
    Array.from({ length: 1050 }, (_, index) => [`e${index}`, { resources: { a: level } }]),
  );
  const { entries } = await planLimits(repository, manifestFor({ entities }));
  expect(entries).toHaveLength(1050);
  expect(reads).toBe(1050);
  expect(most).toBe(100);
});

async function listProblems(
  repository: Repository,
  entities: Readonly<Record<string, DeclaredEntity>>,
): Promise<readonly ManifestProblem[]> {
  const error = await planLimits(repository, manifestFor({ entities })).catch((caught) => caught);
  expect(error).toBeInstanceOf(ManifestError);
  return (error as ManifestError).problems;
}

/** A store with records that ours would refuse to create. */
function storing(records: Readonly<Record<string, Entity>>): Repository {
  const repository = new MemoryRepository();
  repository.getEntity = async (id) => records[id];
  return repository;
}
