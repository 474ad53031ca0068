import { expect, it } from "vitest";
import { ApplyConflictError, Limit, ValidationError } from "zae-limiter";
import { applyLimits, ApplyError, planLimits, type ApplyProgress } from "zae-limiter/manifest";
import { MemoryRepository } from "zae-limiter/memory";
import { faultyRepository } from "zae-limiter/testing";
import { manifestFor } from "../../test/support/manifests.ts";

const RPM = Limit.perMinute("rpm", 100);
const TPM = Limit.perMinute("tpm", 1000, { burst: 1500 });

/** Something at every level, and a parent that is declared after its child. */
const TEAM = manifestFor({
  system: { limits: [RPM], onUnavailable: "allow", auditRetentionDays: 30 },
  resources: { "gpt-4": { limits: [TPM], inherit: true } },
  entities: {
    "key-1": {
      parentId: "acme",
      cascade: true,
      resources: { _default_: { limits: [RPM], inherit: false } },
    },
    acme: { name: "Acme Inc", metadata: { plan: "gold" }, resources: {} },
  },
});

const NOTHING = manifestFor({});

it("creates what is declared, and a second apply finds nothing to do", async () => {
  const repository = new MemoryRepository();
  const progress: ApplyProgress[] = [];
  const report = await applyLimits(repository, TEAM, {
    principal: "ci",
    onProgress: (now) => progress.push(now),
  });
  expect(report).toEqual({ revision: 2, created: 5, updated: 0, deleted: 0, unchanged: 0 });
  expect(progress.map(({ done, total, entry }) => [done, total, entry.entityId])).toEqual([
    [1, 5, "acme"],
    [2, 5, "key-1"],
    [3, 5, undefined],
    [4, 5, undefined],
    [5, 5, "key-1"],
  ]);
  expect(await repository.getSystemDefaults()).toEqual({
    limits: [RPM],
    onUnavailable: "allow",
    auditRetentionDays: 30,
    usageRetentionDays: 90,
  });
  expect(await repository.getLevel({ resource: "gpt-4" })).toMatchObject({
    limits: [TPM],
    inherit: true,
  });
  expect(await repository.getLimits("key-1")).toEqual([RPM]);
  expect(await repository.getEntity("key-1")).toMatchObject({ parentId: "acme", cascade: true });
  expect(await repository.getEntity("acme")).toMatchObject({
    name: "Acme Inc",
    metadata: { plan: "gold" },
  });
  const state = await repository.getProvisionerState();
  expect(state).toMatchObject({ applied: TEAM.declared, appliedHash: TEAM.hash, revision: 2 });
  expect(state.pending).toBeUndefined();
  expect(await applyLimits(repository, TEAM)).toEqual({
    revision: 2,
    created: 0,
    updated: 0,
    deleted: 0,
    unchanged: 5,
  });
  expect(await repository.getProvisionerState()).toEqual(state);
});
