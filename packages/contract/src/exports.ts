import assert from "node:assert/strict";
import { type DeclaredLimits, Limit, type Repository } from "zae-limiter";
import {
  applyLimits,
  exportLimits,
  type Manifest,
  buildManifest,
  planLimits,
  readManifest,
} from "zae-limiter/manifest";
import { MODEL, RPM } from "./calls.ts";
import type { Topic } from "./world.ts";

const TPM = Limit.parse("tpm:10000/min:15000");

/** Exports of declared limits. */
export const exportsTopic: Topic = (test) => {
  test("an export contains exactly what is stored in the namespace", async ({ repository }) => {
    await repository.registerNamespace("tenant-a");
    await fill(await repository.namespace("tenant-a"));
    assert.deepEqual(await exportLimits(repository), { resources: {}, entities: {} });
    await fill(repository);
    await repository.deleteLimits("limited", { resource: "search" });
    assert.deepEqual(await exportLimits(repository), {
      system: { onUnavailable: "allow", usageRetentionDays: 30, limits: [TPM, RPM] },
      resources: {
        [MODEL]: { limits: [RPM], inherit: true },
        search: { limits: [TPM], inherit: false },
      },
      entities: {
        child: { parentId: "org", cascade: false, resources: {} },
        limited: {
          resources: {
            _default_: { limits: [RPM, TPM], inherit: true },
            [MODEL]: { limits: [TPM], inherit: false },
          },
        },
        org: { name: "The org", metadata: { plan: "gold", empty: "" }, resources: {} },
        plain: { resources: {} },
        recorded: { name: "recorded", resources: { [MODEL]: { limits: [RPM], inherit: false } } },
      },
    });
  });

  test("settings are exported without limits, and a default retention not at all", async ({
    repository,
  }) => {
    const defaults = {
      auditRetentionDays: 90,
      usageRetentionDays: 90,
      onUnavailable: "block",
    } as const;
    await repository.setSystemDefaults([RPM], { ...defaults, inherit: false });
    assert.deepEqual((await exportLimits(repository)).system, {
      onUnavailable: "block",
      limits: [RPM],
      inherit: false,
    });
    await repository.deleteSystemDefaults();
    await repository.registerNamespace("tenant-a");
    const tenant = await repository.namespace("tenant-a", { auditRetentionDays: 7 });
    assert.deepEqual((await exportLimits(tenant)).system, { auditRetentionDays: 7 });
  });

  test("a plan of an export shows no change", async ({ repository }) => {
    await fill(repository);
    const manifest = write(repository.namespaceName, await exportLimits(repository));
    const { entries } = await planLimits(repository, manifest);
    assert.equal(entries.length, 11);
    assert.deepEqual(
      entries.filter(({ action }) => action !== "unchanged"),
      [],
    );
  });

  test("an export that is applied to another namespace exports the same there", async ({
    repository,
  }) => {
    await fill(repository);
    const exported = await exportLimits(repository);
    await repository.registerNamespace("tenant-a");
    const tenant = await repository.namespace("tenant-a");
    await applyLimits(tenant, write("tenant-a", exported));
    assert.deepEqual(await exportLimits(tenant), exported);
  });
};

/** The contents of a manifest as they are in a file. */
function write(namespace: string, declared: DeclaredLimits): Manifest {
  const content: unknown = JSON.parse(JSON.stringify(buildManifest(namespace, declared)));
  return readManifest([{ file: "export.json", content, findPosition: () => undefined }]);
}

async function fill(repository: Repository): Promise<void> {
  await repository.setSystemDefaults([TPM, RPM], {
    onUnavailable: "allow",
    usageRetentionDays: 30,
  });
  await repository.setResourceDefaults("search", [TPM], { inherit: false });
  await repository.setResourceDefaults(MODEL, [RPM]);
  await repository.createEntity("plain");
  await repository.createEntity("org", {
    name: "The org",
    metadata: { plan: "gold", empty: "" },
  });
  await repository.createEntity("child", { parentId: "org" });
  await repository.createEntity("recorded");
  await repository.setLimits("recorded", [RPM], { resource: MODEL, inherit: false });
  await repository.setLimits("limited", [TPM], { resource: MODEL, inherit: false });
  await repository.setLimits("limited", [TPM], { resource: "search" });
  await repository.setLimits("limited", [RPM, TPM]);
}
