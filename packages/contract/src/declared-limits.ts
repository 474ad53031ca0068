import assert from "node:assert/strict";
import {
  ApplyConflictError,
  Limit,
  NamespaceNotFoundError,
  RateLimiterUnavailable,
  type Repository,
  ValidationError,
} from "zae-limiter";
import {
  ApplyError,
  applyLimits,
  type Manifest,
  ManifestError,
  planLimits,
  readManifest,
} from "zae-limiter/manifest";
import { faultyRepository } from "zae-limiter/testing";
import {
  call,
  failsWith,
  fits,
  footprint,
  KEY,
  readLeft,
  MODEL,
  getRefusal,
  RPM,
  take,
} from "./calls.ts";
import type { Topic } from "./world.ts";

/** Something at every level, in the format of a file. */
const TEAM = {
  system: { on_unavailable: "allow", audit_retention_days: 30, limits: { rpm: 100 } },
  resources: { [MODEL]: { limits: { tpm: "1000/min:1500" } } },
  entities: {
    [KEY]: {
      parent: "project",
      resources: {
        _default_: { limits: { rpm: 50 }, inherit: false },
        [MODEL]: { limits: { rpm: 5 }, inherit: false },
      },
    },
    project: { name: "Project 1", metadata: { plan: "gold" } },
  },
} as const;

/** Declared limits: plans, and applies through the repository's own methods. */
export const declaredLimitsTopic: Topic = (test) => {
  test("an apply stores what is declared, and a plan of it shows no change afterwards [W-64]", async ({
    repository,
  }) => {
    const manifest = buildManifest(TEAM);
    assert.deepEqual(await actions(repository, manifest), { create: 6 });
    const report = await applyLimits(repository, manifest);
    assert.deepEqual(report, { revision: 2, created: 6, updated: 0, deleted: 0, unchanged: 0 });
    assert.deepEqual(await repository.getSystemDefaults(), {
      limits: [RPM],
      onUnavailable: "allow",
      auditRetentionDays: 30,
      usageRetentionDays: 90,
    });
    const levels = [{ resource: MODEL }, { entityId: KEY }, { entityId: KEY, resource: MODEL }];
    assert.deepEqual(await Promise.all(levels.map((level) => repository.getLevel(level))), [
      {
        source: "resource",
        limits: [Limit.perMinute("tpm", 1000, { burst: 1500 })],
        inherit: true,
      },
      { source: "entity_default", limits: [Limit.perMinute("rpm", 50)], inherit: false },
      { source: "entity", limits: [Limit.perMinute("rpm", 5)], inherit: false },
    ]);
    const { name, parentId, metadata } = (await repository.getEntity(KEY))!;
    assert.deepEqual([name, parentId, metadata], [KEY, "project", {}]);
    assert.deepEqual((await repository.getEntity("project"))?.metadata, { plan: "gold" });
    const before = await footprint(repository);
    assert.deepEqual(await actions(repository, manifest), { unchanged: 6 });
    const again = await applyLimits(repository, manifest);
    assert.deepEqual(again, { revision: 2, created: 0, updated: 0, deleted: 0, unchanged: 6 });
    assert.deepEqual(await footprint(repository), before, "the second apply has written something");
  });

  test("what an apply has stored is listed like everything else [W-64]", async ({ repository }) => {
    await applyLimits(repository, buildManifest(TEAM));
    assert.deepEqual(await repository.listResourcesWithDefaults(), [MODEL]);
    assert.deepEqual(await repository.listResourcesWithEntityConfigs(), ["_default_", MODEL]);
    assert.deepEqual((await repository.listEntitiesWithCustomLimits(MODEL)).items, [KEY]);
    assert.deepEqual((await repository.listEntitiesWithCustomLimits("_default_")).items, [KEY]);
    assert.deepEqual(
      (await repository.getChildren("project")).map(({ id }) => id),
      [KEY],
    );
    await applyLimits(repository, buildManifest({}));
    assert.deepEqual(await repository.listResourcesWithDefaults(), []);
    assert.deepEqual(await repository.listResourcesWithEntityConfigs(), []);
  });

  test("every change of an apply is in the audit trail, with its principal [W-64]", async ({
    repository,
  }) => {
    await applyLimits(repository, buildManifest(TEAM), { principal: "ci" });
    await applyLimits(repository, buildManifest({}), { principal: "cleanup" });
    const trail = async (id: string): Promise<readonly string[]> =>
      (await repository.getAuditEvents(id)).items
        .map(({ action, principal }) => `${action} by ${principal}`)
        .toReversed();
    assert.deepEqual(await trail("project"), ["entity_created by ci"]);
    assert.deepEqual(await trail(`$RESOURCE:${MODEL}`), [
      "limits_set by ci",
      "limits_deleted by cleanup",
    ]);
    assert.deepEqual((await trail(KEY)).toSorted(), [
      "entity_created by ci",
      "limits_deleted by cleanup",
      "limits_deleted by cleanup",
      "limits_set by ci",
      "limits_set by ci",
    ]);
    assert.equal((await trail("$SYSTEM"))[0], "limits_set by ci");
  });

  test("settings that a manifest does not name stay as they are [W-64]", async ({ repository }) => {
    await repository.setSystemDefaults([RPM], { auditRetentionDays: 30, usageRetentionDays: 7 });
    await applyLimits(repository, buildManifest({ system: { limits: { rpm: 7 } } }));
    const { limits, ...settings } = await repository.getSystemDefaults();
    assert.deepEqual(limits, [Limit.perMinute("rpm", 7)]);
    const kept = { onUnavailable: undefined, auditRetentionDays: 30, usageRetentionDays: 7 };
    assert.deepEqual(settings, kept);
    await applyLimits(repository, buildManifest({ system: { usage_retention_days: 14 } }));
    assert.deepEqual(await repository.getSystemDefaults(), {
      ...kept,
      limits: [],
      usageRetentionDays: 14,
    });
    await applyLimits(repository, buildManifest({}));
    assert.equal((await repository.getSystemDefaults()).usageRetentionDays, 90);
  });

  test("a declaration that no file could contain is refused before anything is stored [W-64]", async ({
    repository,
  }) => {
    const manifest = buildManifest(TEAM);
    const limits = [{ name: "wcu", capacity: -5, refillAmount: 1, refillPeriodSeconds: 60 }];
    const before = await footprint(repository);
    for (const name of ["bad#name", MODEL]) {
      const resources = { [name]: { limits, inherit: false } };
      await failsWith(ValidationError, () =>
        applyLimits(repository, { ...manifest, declared: { resources, entities: {} } }),
      );
    }
    assert.deepEqual(await footprint(repository), before);
  });

  test("after a failed change the state shows what is pending, and the next apply continues [W-64]", async ({
    repository,
  }) => {
    const manifest = buildManifest(TEAM);
    const failing = faultyRepository(repository, (operation) =>
      operation === "setLimits" ? "error-before" : undefined,
    );
    const error = await failsWith(ApplyError, () => applyLimits(failing, manifest));
    assert.deepEqual([error.done, error.left.length], [4, 2]);
    assert.ok(error.cause instanceof RateLimiterUnavailable);
    const state = await repository.getProvisionerState();
    assert.deepEqual(
      [state.lastApplied, state.appliedHash, state.pending?.hash],
      [undefined, undefined, manifest.hash],
    );
    assert.deepEqual(await actions(repository, manifest), { create: 2, unchanged: 4 });
    assert.equal((await applyLimits(repository, manifest)).created, 2);
    assert.equal((await repository.getProvisionerState()).pending, undefined);
  });

  test("calls are decided by the last apply, also with existing buckets and cached limits", async (world) => {
    const { repository, limiter } = world;
    await repository.setSystemDefaults([RPM]);
    await take(world, { rpm: 10 });
    assert.equal((await repository.resolveLimits(KEY, MODEL))?.source, "system");
    await applyLimits(repository, buildManifest(TEAM));
    const refusal = await getRefusal(limiter, call({ rpm: 6 }));
    assert.equal(refusal.primaryViolation.source, "entity");
    assert.deepEqual((await repository.resolveLimits(KEY, MODEL))?.limits, [
      Limit.perMinute("rpm", 5),
    ]);
    assert.equal(await fits(world, { rpm: 5 }), true);
    assert.equal(await fits(world, { rpm: 1 }), false);
    await applyLimits(repository, buildManifest({ system: { limits: { rpm: 100 } } }));
    assert.equal((await repository.resolveLimits(KEY, MODEL))?.source, "system");
  });

  test("a level that leaves the manifest loses its limits, but neither record nor balance", async (world) => {
    const { repository } = world;
    await repository.setLimits(KEY, [RPM], { resource: "search" });
    await repository.setResourceDefaults("search", [RPM], { inherit: true });
    await repository.createEntity("neighbour");
    const unmanaged = await footprint(repository);
    await applyLimits(
      repository,
      buildManifest({ system: { limits: { rpm: 100 } }, ...getEntity(40) }),
    );
    await take(world, { rpm: 10 });
    const report = await applyLimits(
      repository,
      buildManifest({ system: { limits: { rpm: 100 } } }),
    );
    assert.deepEqual([report.deleted, report.unchanged], [1, 1]);
    assert.deepEqual(await repository.getLimits(KEY, { resource: MODEL }), []);
    assert.equal((await repository.getEntity(KEY))?.name, "Ada");
    assert.ok((await readLeft(world))["rpm"]! < 100, "the bucket was not deleted");
    await applyLimits(repository, buildManifest({}));
    assert.deepEqual(await actions(repository, buildManifest({})), {});
    assert.deepEqual((await repository.getSystemDefaults()).limits, []);
    const { resources, configured } = unmanaged as Record<string, unknown>;
    assert.deepEqual(await repository.listResourcesWithDefaults(), resources);
    assert.deepEqual(await repository.listResourcesWithEntityConfigs(), configured);
    assert.equal((await repository.getLevel({ resource: "search" }))?.inherit, true);
  });

  test("a level that was set by hand is adopted by naming it, and drift is marked", async ({
    repository,
  }) => {
    await repository.setLimits(KEY, [Limit.perMinute("rpm", 1)], { resource: MODEL });
    const manifest = buildManifest(getEntity(40));
    const plans = async (): Promise<readonly string[]> =>
      (await planLimits(repository, manifest)).entries.flatMap(({ action, managed, values }) =>
        values.map(
          ({ name, before, after, drift }) =>
            `${action} ${name} ${before} → ${after}${managed ? " managed" : ""}${drift ? " drift" : ""}`,
        ),
      );
    assert.deepEqual(await plans(), [
      "create name undefined → Ada",
      "update limits.rpm 1/min → 40/min",
    ]);
    await applyLimits(repository, manifest);
    await repository.setLimits(KEY, [Limit.perMinute("rpm", 2)], { resource: MODEL });
    await repository.updateEntity(KEY, { name: "Eve" });
    assert.deepEqual(await plans(), [
      "update name Eve → Ada managed drift",
      "update limits.rpm 2/min → 40/min managed drift",
    ]);
    await applyLimits(repository, manifest);
    assert.deepEqual(await plans(), []);
  });

  test("a parent that differs from the stored one is an error of the plan, and nothing is changed", async ({
    repository,
  }) => {
    await repository.createEntity(KEY);
    const before = await footprint(repository);
    for (const run of [planLimits, applyLimits]) {
      const error = await failsWith(ManifestError, () => run(repository, buildManifest(TEAM)));
      assert.deepEqual(
        error.problems.map(({ path }) => path),
        [`entities.${KEY}.parent`],
      );
    }
    assert.deepEqual(await footprint(repository), before);
  });

  test("of two concurrent applies, the store holds all of one and nothing of the other", async ({
    repository,
  }) => {
    const manifests = ["first", "second"].map((name, index) =>
      buildManifest({
        system: { limits: { [name]: index + 1 } },
        resources: { [name]: { limits: { rpm: 1 } }, shared: { limits: { [name]: 1 } } },
      }),
    );
    const answers = await Promise.allSettled(
      manifests.map((manifest) => applyLimits(repository, manifest)),
    );
    for (const answer of answers)
      if (answer.status === "rejected") assert.ok(answer.reason instanceof ApplyConflictError);
    const { appliedHash, pending } = await repository.getProvisionerState();
    const winner = manifests.find(({ hash }) => hash === appliedHash);
    assert.ok(winner !== undefined && pending === undefined);
    const names = Object.keys(winner.declared.resources).toSorted();
    assert.deepEqual(await repository.listResourcesWithDefaults(), names);
    assert.deepEqual(Object.keys(await actions(repository, winner)), ["unchanged"]);
  });

  test("a manifest is applied only in its own namespace [W-64]", async ({ repository }) => {
    const elsewhere = buildManifest(TEAM, "tenant-b");
    await failsWith(ValidationError, () => planLimits(repository, elsewhere));
    await failsWith(ValidationError, () => applyLimits(repository, elsewhere));
    await failsWith(NamespaceNotFoundError, () => repository.namespace("tenant-b"));
    await repository.registerNamespace("tenant-b");
    const before = await footprint(repository);
    const tenant = await repository.namespace("tenant-b");
    await applyLimits(tenant, elsewhere);
    assert.deepEqual((await tenant.getSystemDefaults()).limits, [RPM]);
    assert.deepEqual(await footprint(repository), before);
    await repository.deleteNamespace("tenant-b");
    await failsWith(NamespaceNotFoundError, () =>
      applyLimits(tenant, buildManifest({}, "tenant-b")),
    );
  });
};

/** Builds a manifest as a file without positions has it. */
function buildManifest(content: object, namespace = "default"): Manifest {
  const document = { file: "limits.json", content: { namespace, ...content } };
  return readManifest([{ ...document, findPosition: () => undefined }]);
}

/** The usual entity with a record and a limit. */
function getEntity(rpm: number): object {
  return { entities: { [KEY]: { name: "Ada", resources: { [MODEL]: { limits: { rpm } } } } } };
}

/** Counts the entries of a plan by action. */
async function actions(
  repository: Repository,
  manifest: Manifest,
): Promise<Readonly<Record<string, number>>> {
  const counts: Record<string, number> = {};
  for (const { action } of (await planLimits(repository, manifest)).entries)
    counts[action] = (counts[action] ?? 0) + 1;
  return counts;
}
