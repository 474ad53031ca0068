import assert from "node:assert/strict";
import { type Repository, ValidationError } from "zae-limiter";
import { failsWith, footprint, KEY, MODEL, RPM } from "./calls.ts";
import type { Topic } from "./world.ts";

/** A call of every method that has options, with the wrong ones. */
const CALLS: Readonly<Record<string, (repository: Repository, wrong: never) => Promise<unknown>>> =
  {
    createEntity: (repository, wrong) => repository.createEntity(KEY, wrong),
    ensureEntity: (repository, wrong) => repository.ensureEntity(KEY, wrong),
    updateEntity: (repository, wrong) => repository.updateEntity(KEY, wrong),
    listEntities: (repository, wrong) => repository.listEntities(wrong),
    deleteEntity: (repository, wrong) => repository.deleteEntity(KEY, wrong),
    setLimits: (repository, wrong) => repository.setLimits(KEY, [RPM], wrong),
    getLimits: (repository, wrong) => repository.getLimits(KEY, wrong),
    getLevel: (repository, wrong) => repository.getLevel(wrong),
    deleteLimits: (repository, wrong) => repository.deleteLimits(KEY, wrong),
    setResourceDefaults: (repository, wrong) => repository.setResourceDefaults(MODEL, [RPM], wrong),
    deleteResourceDefaults: (repository, wrong) => repository.deleteResourceDefaults(MODEL, wrong),
    setSystemDefaults: (repository, wrong) => repository.setSystemDefaults([RPM], wrong),
    deleteSystemDefaults: (repository, wrong) => repository.deleteSystemDefaults(wrong),
    listEntitiesWithCustomLimits: (repository, wrong) =>
      repository.listEntitiesWithCustomLimits(MODEL, wrong),
    getBuckets: (repository, wrong) => repository.getBuckets(KEY, wrong),
    getResourceCapacity: (repository, wrong) => repository.getResourceCapacity(MODEL, "rpm", wrong),
    getUsageSnapshots: (repository, wrong) => repository.getUsageSnapshots(wrong),
    getUsageSummary: (repository, wrong) => repository.getUsageSummary(wrong),
    getAuditEvents: (repository, wrong) => repository.getAuditEvents(KEY, wrong),
    namespace: (repository, wrong) => repository.namespace(repository.namespaceName, wrong),
    purgeNamespace: (repository, wrong) => repository.purgeNamespace("nobody", wrong),
    setVersionRecord: (repository, wrong) => repository.setVersionRecord(wrong),
  };

/** Names that are near those of an option, and what was meant by them. */
const MISSPELT = {
  createEntity: ["parentID", "parentId"],
  setLimits: ["resorce", "resource"],
  setSystemDefaults: ["usageRetention", "usageRetentionDays"],
  getUsageSummary: ["entity_id", "entityId"],
  getAuditEvents: ["limits", "limit"],
  namespace: ["onUnavailible", "onUnavailable"],
} as const satisfies Partial<Record<keyof typeof CALLS, readonly [string, string]>>;

/** An option that nobody knows is a typing mistake: it is refused, and nothing is done. */
export const unknownOptionsTopic: Topic = (test) => {
  for (const [method, run] of Object.entries(CALLS)) {
    test(`${method} refuses an option that nobody knows, and does nothing`, async ({
      repository,
    }) => {
      const before = await footprint(repository);
      const error = await failsWith(ValidationError, () =>
        run(repository, { quiet: true } as never),
      );
      assert.equal(error.field, "quiet");
      assert.match(error.reason, new RegExp(`^is not an option of ${method}; known are `));
      await failsWith(ValidationError, () => run(repository, "quiet" as never));
      assert.deepEqual(await footprint(repository), before);
    });
  }

  for (const [method, [wrong, meant]] of Object.entries(MISSPELT))
    test(`${method} names ${meant} where ${wrong} is passed`, async ({ repository }) => {
      const error = await failsWith(ValidationError, () =>
        CALLS[method]!(repository, { [wrong]: "x" } as never),
      );
      assert.equal(error.reason, `is not an option of ${method}; did you mean ${meant}?`);
    });

  test("splitBucket and mergeBucket, where they exist, refuse an option that nobody knows", async ({
    repository,
  }) => {
    for (const method of ["splitBucket", "mergeBucket"] as const) {
      const change = repository[method]?.bind(repository);
      if (change === undefined) continue;
      const error = await failsWith(ValidationError, () =>
        change(KEY, MODEL, { shard: 2 } as never),
      );
      assert.equal(error.reason, `is not an option of ${method}; did you mean shards?`);
    }
  });
};
