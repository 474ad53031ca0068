import assert from "node:assert/strict";
import { InvalidIdentifierError, InvalidNameError, ValidationError } from "zae-limiter";
import { failsWith, footprint, KEY, MODEL, RPM, take, TPM } from "./calls.ts";
import type { Topic } from "./world.ts";

/** What each level stores, separately from the others; limits and settings of the system level. */
export const storedLevelsTopic: Topic = (test) => {
  test("each level reads back alone, with its list and whether it inherits", async ({
    repository,
  }) => {
    const names = [{}, { resource: MODEL }, { entityId: KEY }, { entityId: KEY, resource: MODEL }];
    const levels = () => Promise.all(names.map((name) => repository.getLevel(name)));
    const nothing = [undefined, undefined, undefined, undefined];
    assert.deepEqual(await levels(), nothing);
    await repository.setSystemDefaults(undefined, { onUnavailable: "allow" });
    assert.deepEqual(await levels(), nothing, "settings are not limits");
    await repository.setSystemDefaults([RPM, TPM]);
    await repository.setResourceDefaults(MODEL, [TPM]);
    await repository.setLimits(KEY, [RPM], { inherit: false });
    await repository.setLimits(KEY, [TPM, RPM], { resource: MODEL });
    const stored = [
      { source: "system", limits: [RPM, TPM], inherit: true },
      { source: "resource", limits: [TPM], inherit: true },
      { source: "entity_default", limits: [RPM], inherit: false },
      { source: "entity", limits: [TPM, RPM], inherit: true },
    ];
    assert.deepEqual(await levels(), stored);
    const ofDefault = await repository.getLevel({ entityId: KEY, resource: "_default_" });
    assert.deepEqual(ofDefault, stored[2]);
    assert.equal(await repository.getLevel({ entityId: "other" }), undefined);
    assert.equal(await repository.getLevel({ resource: "search" }), undefined);
    await repository.setResourceDefaults(MODEL, [TPM], { inherit: false });
    await repository.deleteLimits(KEY);
    await repository.deleteSystemDefaults();
    const left = [undefined, { ...stored[1], inherit: false }, undefined, stored[3]];
    assert.deepEqual(await levels(), left);
  });

  test("an invalid level is refused", async ({ repository }) => {
    for (const entityId of ["", "a#b", null, 5])
      await failsWith(InvalidIdentifierError, () =>
        repository.getLevel({ entityId: entityId as string, resource: MODEL }),
      );
    for (const resource of ["", "a#b", null, 5]) {
      await failsWith(InvalidNameError, () =>
        repository.getLevel({ resource: resource as string }),
      );
      await failsWith(InvalidNameError, () =>
        repository.getLevel({ entityId: KEY, resource: resource as string }),
      );
    }
    await failsWith(InvalidNameError, () => repository.getLevel({ resource: "_default_" }));
    await failsWith(ValidationError, () => repository.getLevel(undefined as unknown as object));
  });

  test("the system's limits can be deleted without its settings, which is audited", async (world) => {
    const { repository } = world;
    const settings = { onUnavailable: "allow", auditRetentionDays: 30, usageRetentionDays: 7 };
    await repository.setSystemDefaults([RPM], settings as object);
    await take(world, { rpm: 1 });
    await repository.deleteSystemDefaults({ keepSettings: true, principal: "ops" });
    assert.deepEqual(await repository.getSystemDefaults(), { limits: [], ...settings });
    assert.equal(repository.lastOnUnavailable, "allow");
    assert.equal(await repository.resolveLimits(KEY, MODEL), undefined);
    const [event] = (await repository.getAuditEvents("$SYSTEM")).items;
    assert.deepEqual([event?.action, event?.principal], ["limits_deleted", "ops"]);
    const before = await footprint(repository);
    await repository.deleteSystemDefaults({ keepSettings: true });
    assert.deepEqual(await footprint(repository), before, "there were no limits any more");
    await repository.setSystemDefaults([TPM]);
    assert.deepEqual(await repository.getSystemDefaults(), { limits: [TPM], ...settings });
    const bad = { keepSettings: "yes" } as unknown as { readonly keepSettings: boolean };
    await failsWith(ValidationError, () => repository.deleteSystemDefaults(bad));
    assert.deepEqual((await repository.getSystemDefaults()).limits, [TPM]);
  });

  test("without settings, nothing is left of a system level whose limits are deleted", async ({
    repository,
  }) => {
    await repository.setSystemDefaults([RPM]);
    await repository.deleteSystemDefaults({ keepSettings: true });
    const before = await footprint(repository);
    await repository.deleteSystemDefaults();
    assert.deepEqual(await footprint(repository), before, "there was nothing to delete");
  });

  test("settings are stored without limits, and limits stay as they are", async ({
    repository,
  }) => {
    await repository.setSystemDefaults(undefined, { auditRetentionDays: 30, principal: "ops" });
    await repository.setSystemDefaults([RPM]);
    await repository.setSystemDefaults(undefined, { onUnavailable: "allow" });
    assert.deepEqual(await repository.getSystemDefaults(), {
      limits: [RPM],
      onUnavailable: "allow",
      auditRetentionDays: 30,
      usageRetentionDays: 90,
    });
    assert.equal(repository.lastOnUnavailable, "allow");
    assert.equal((await repository.getAuditEvents("$SYSTEM")).items.length, 3);
    await failsWith(ValidationError, () => repository.setSystemDefaults(undefined));
    await failsWith(ValidationError, () =>
      repository.setSystemDefaults(undefined, { principal: "ops" }),
    );
    const none = null as unknown as undefined;
    await failsWith(ValidationError, () =>
      repository.setSystemDefaults(none, { onUnavailable: "block" }),
    );
    assert.equal((await repository.getAuditEvents("$SYSTEM")).items.length, 3);
  });
};
