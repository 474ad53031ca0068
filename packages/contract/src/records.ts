import assert from "node:assert/strict";
import { Limit, ValidationError } from "zae-limiter";
import { failsWith } from "./calls.ts";
import type { Topic } from "./world.ts";

/** The version record, and that results are copies of the stored data. */
export const recordsTopic: Topic = (test) => {
  test("changes that a caller makes to a result do not affect what is stored", async ({
    repository,
    clock,
  }) => {
    spoil(await repository.createEntity("key-1", { metadata: { plan: "gold" } }));
    await repository.setVersionRecord({ schemaVersion: "1.0.0" });
    assert.deepEqual((await repository.getEntity("key-1"))?.createdAt, new Date(clock.now()));
    await repository.putProvisionerState({
      ...(await repository.getProvisionerState()),
      managedResources: ["gpt-4"],
    });
    await repository.registerNamespace("tenant-a");
    await repository.setSystemDefaults([Limit.perMinute("rpm", 10)]);
    const reads: readonly (() => Promise<unknown>)[] = [
      () => repository.getEntity("key-1"),
      () => repository.getProvisionerState(),
      () => repository.getNamespace("tenant-a"),
      () => repository.listNamespaces(),
      () => repository.getVersionRecord(),
      () => repository.getSystemDefaults(),
      async () => (await repository.listEntities()).items,
      async () => (await repository.getAuditEvents("key-1")).items,
      async () => (await repository.namespace("tenant-a")).getProvisionerState(),
    ];
    for (const read of reads) {
      const before = structuredClone(await read());
      spoil(await read());
      assert.deepEqual(await read(), before, read.toString());
    }
  });

  test("the version record reads back, and its omitted parts are empty", async ({
    repository,
    clock,
  }) => {
    await repository.setVersionRecord({
      schemaVersion: "1.0.0",
      lambdaVersion: "0.2.0",
      clientMinVersion: "0.1.0",
      updatedBy: "ops",
    });
    assert.deepEqual(await repository.getVersionRecord(), {
      schemaVersion: "1.0.0",
      lambdaVersion: "0.2.0",
      clientMinVersion: "0.1.0",
      updatedAt: new Date(clock.now()),
      updatedBy: "ops",
    });
    await repository.setVersionRecord({ schemaVersion: "1.1.0" });
    const record = await repository.getVersionRecord();
    assert.deepEqual(
      [record?.schemaVersion, record?.lambdaVersion, record?.updatedBy],
      ["1.1.0", undefined, undefined],
    );
    await failsWith(ValidationError, () =>
      repository.setVersionRecord({ schemaVersion: "latest" }),
    );
    assert.equal((await repository.getVersionRecord())?.schemaVersion, "1.1.0");
  });
};

/**
 * Overwrites everything that can be overwritten in a result, such as a Date even in a frozen
 * object.
 */
function spoil(answer: unknown): void {
  if (answer instanceof Date) answer.setTime(0);
  if (typeof answer !== "object" || answer === null) return;
  for (const value of Object.values(answer)) spoil(value);
  if (Object.isFrozen(answer)) return;
  if (Array.isArray(answer)) answer.length = 0;
  else for (const key of Object.keys(answer)) Reflect.set(answer, key, "spoiled");
}
