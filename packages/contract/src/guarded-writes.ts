import assert from "node:assert/strict";
import { ApplyConflictError, Limit, type Repository, ValidationError } from "zae-limiter";
import { seededRandom } from "zae-limiter/testing";
import { failsWith, footprint, KEY, MODEL, RPM, take, TPM } from "./calls.ts";
import type { Topic, World } from "./world.ts";

type By = NonNullable<Parameters<Repository["setLimits"]>[2]>;
type Write = (repository: Repository, by: By) => Promise<unknown>;

/** A call of every method that can be guarded, in an order in which each one changes something. */
const WRITES: Readonly<Record<string, Write>> = {
  createEntity: (repository, by) => repository.createEntity("other", by),
  ensureEntity: (repository, by) => repository.ensureEntity("third", { parentId: KEY, ...by }),
  updateEntity: (repository, by) => repository.updateEntity(KEY, { name: "Ada", ...by }),
  setLimits: (repository, by) => repository.setLimits(KEY, [TPM], { resource: MODEL, ...by }),
  deleteLimits: (repository, by) => repository.deleteLimits(KEY, by),
  setResourceDefaults: (repository, by) => repository.setResourceDefaults(MODEL, [TPM], by),
  deleteResourceDefaults: (repository, by) => repository.deleteResourceDefaults(MODEL, by),
  setSystemDefaults: (repository, by) =>
    repository.setSystemDefaults([TPM], { onUnavailable: "block", auditRetentionDays: 7, ...by }),
  "setSystemDefaults of settings": (repository, by) =>
    repository.setSystemDefaults(undefined, { onUnavailable: "allow", ...by }),
  "deleteSystemDefaults of limits": (repository, by) =>
    repository.deleteSystemDefaults({ keepSettings: true, ...by }),
  deleteSystemDefaults: (repository, by) => repository.deleteSystemDefaults(by),
};

/** Calls that find nothing to change, or find that they cannot. */
const IDLE: Readonly<Record<string, Write>> = {
  "createEntity of what exists": (repository, by) => repository.createEntity(KEY, by),
  "createEntity under an unknown parent": (repository, by) =>
    repository.createEntity("orphan", { parentId: "unknown", ...by }),
  "ensureEntity of what exists": (repository, by) => repository.ensureEntity(KEY, by),
  "updateEntity of what is missing": (repository, by) =>
    repository.updateEntity("unknown", { name: "Ada", ...by }),
  "deleteLimits of nothing": (repository, by) => repository.deleteLimits("unknown", by),
  "deleteResourceDefaults of nothing": (repository, by) =>
    repository.deleteResourceDefaults("search", by),
};

/** Seeds of the race. A failure names its seed. */
const SEEDS = [1, 2];

/** Writes that take effect only while the state of declared limits has a given revision. */
export const guardedWritesTopic: Topic = (test) => {
  test("a write under another revision throws and changes nothing", async (world) => {
    const { repository } = world;
    await prepare(world);
    for (const wrong of [
      [1, 2],
      [0, 2, 3],
    ]) {
      const before = await footprint(repository);
      const known = [repository.lastOnUnavailable, repository.getCacheStats()];
      for (const ifRevision of wrong)
        for (const [name, write] of Object.entries({ ...WRITES, ...IDLE })) {
          const text = `${name} at ${ifRevision}`;
          const run = (): unknown => write(repository, { ifRevision });
          const error = await failsWith(ApplyConflictError, run, text);
          assert.equal(error.code, "ERR_LIMITER_APPLY_CONFLICT");
          assert.equal(error.value, String(ifRevision));
        }
      assert.deepEqual([repository.lastOnUnavailable, repository.getCacheStats()], known);
      assert.deepEqual(await footprint(repository), before);
      await advance(repository);
    }
  });

  test("a write under the current revision does what it does without one", async (world) => {
    const { repository } = world;
    await prepare(world);
    await repository.registerNamespace("tenant");
    const tenant = await repository.namespace("tenant");
    await tenant.createEntity(KEY, { ifRevision: 0 });
    await advance(repository);
    for (const [name, write] of Object.entries(WRITES))
      await write(repository, { principal: name.split(" ")[0]!, ifRevision: 1 });
    const audited = [KEY, "other", "third", "$SYSTEM", `$RESOURCE:${MODEL}`];
    const events = await Promise.all(
      audited.map(async (id) => (await repository.getAuditEvents(id)).items),
    );
    const principals = events.flat().flatMap(({ principal }) => principal ?? []);
    assert.deepEqual(
      principals.sort(),
      Object.keys(WRITES)
        .map((name) => name.split(" ")[0]!)
        .sort(),
    );
    const { name } = await repository.ensureEntity(KEY, { ifRevision: 1 });
    assert.equal(name, "Ada");
    assert.deepEqual(await repository.getLimits(KEY, { resource: MODEL }), [TPM]);
    assert.deepEqual(await repository.getLimits(KEY), []);
    await repository.deleteLimits("unknown", { ifRevision: 1 });
    await tenant.setLimits(KEY, [RPM], { ifRevision: 0 });
    await failsWith(ApplyConflictError, () => tenant.setLimits(KEY, [TPM], { ifRevision: 1 }));
  });

  test("an invalid revision is refused, and so is a revision for the deletion of an entity", async (world) => {
    const { repository } = world;
    await prepare(world);
    const before = await footprint(repository);
    for (const ifRevision of [-1, 0.5, Number.NaN, "0", 0n, null])
      for (const [name, write] of Object.entries({ ...WRITES, ...IDLE })) {
        const run = (): unknown => write(repository, { ifRevision: ifRevision as number });
        const error = await failsWith(ValidationError, run, `${name} at ${ifRevision}`);
        assert.equal(error.field, "ifRevision");
        assert.equal(error.code, "ERR_LIMITER_VALIDATION");
      }
    const guarded = { ifRevision: 0 } as object;
    const error = await failsWith(ValidationError, () => repository.deleteEntity(KEY, guarded));
    assert.equal(error.field, "ifRevision");
    assert.deepEqual(await footprint(repository), before);
  });

  for (const seed of SEEDS)
    test(`once a revision is over, no write under it takes effect (seed ${seed})`, async ({
      repository,
    }) => raceWrites({ writing: repository, applying: repository, seed }));
};

/**
 * Several writers make guarded writes as fast as they can while `applying` puts the next state.
 * After that, the audit trail must not grow.
 */
export async function raceWrites(race: {
  readonly writing: Repository;
  readonly applying: Repository;
  readonly seed: number;
}): Promise<void> {
  const { writing, applying, seed } = race;
  const random = seededRandom(seed);
  await advance(applying);
  const { revision: ifRevision } = await applying.getProvisionerState();
  const overtakeAfter = 1 + Math.floor(random() * 6);
  const shown = `seed ${seed}, after ${overtakeAfter} writes`;
  let made = 0;
  let reached!: () => void;
  const enough = new Promise<void>((resolve) => (reached = resolve));
  const ids = ["a", "b", "c"].map((name) => `${name}-${seed}`);
  const writers = ids.map(async (id) => {
    for (let rate = 1; rate <= MOST_WRITES; rate += 1) {
      const limits = [Limit.perMinute("rpm", rate)];
      const isOvertaken = await writing.setLimits(id, limits, { ifRevision }).then(
        () => false,
        (error: unknown) => {
          if (error instanceof ApplyConflictError) return true;
          throw error;
        },
      );
      if (isOvertaken) return;
      made += 1;
      if (made === overtakeAfter) reached();
    }
    assert.fail(`${shown}: writer ${id} was never overtaken`);
  });
  await Promise.race([enough, Promise.all(writers)]);
  await advance(applying);
  const then = await readTrail(applying, ids);
  await Promise.all(writers);
  assert.deepEqual(await readTrail(applying, ids), then, shown);
  assert.equal(then.flat().filter((text) => text.startsWith("limits_set")).length, made, shown);
  await failsWith(ApplyConflictError, () => writing.deleteLimits(ids[0]!, { ifRevision }), shown);
}

/** A writer that makes more writes than this was never stopped. */
const MOST_WRITES = 300;

/** Reads what the writers of the race have done: the audit trail and the stored records. */
async function readTrail(
  repository: Repository,
  ids: readonly string[],
): Promise<readonly (readonly string[])[]> {
  return Promise.all(
    ids.map(async (id) => {
      const { items } = await repository.getAuditEvents(id, { limit: MOST_WRITES });
      const level = await repository.getLevel({ entityId: id });
      const stored = (level?.limits ?? []).map((limit) => Limit.format(limit));
      return [...items.map(({ action, eventId }) => `${action} ${eventId}`), ...stored];
    }),
  );
}

/** Limits at every level, a record and a bucket; the policy is in the cache. */
async function prepare(world: World): Promise<void> {
  const { repository } = world;
  await repository.setSystemDefaults([RPM], { onUnavailable: "allow", usageRetentionDays: 30 });
  await repository.setResourceDefaults(MODEL, [RPM]);
  await repository.createEntity(KEY);
  await repository.setLimits(KEY, [RPM]);
  await take(world, { rpm: 1 });
}

/** Advances the state of declared limits by one revision. */
async function advance(repository: Repository): Promise<void> {
  await repository.putProvisionerState(await repository.getProvisionerState());
}
