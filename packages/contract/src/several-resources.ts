import assert from "node:assert/strict";
import { Limit, ValidationError } from "zae-limiter";
import {
  call,
  failsWith,
  footprint,
  KEY,
  readLeft,
  MODEL,
  getRefusal,
  RPM,
  take,
  TPM,
} from "./calls.ts";
import type { Topic } from "./world.ts";

/** Promise 2 over several resources of one call. */
export const severalResourcesTopic: Topic = (test) => {
  test("a call takes from all of its resources", async (world) => {
    await world.repository.setSystemDefaults([RPM, TPM]);
    await take(world, { rpm: 1 }, { also: { search: { rpm: 2, tpm: 10 }, "tools/run": {} } });
    assert.deepEqual(await readLeft(world), { rpm: 99, tpm: 1000 });
    assert.deepEqual(await readLeft(world, KEY, "search"), { rpm: 98, tpm: 990 });
    assert.deepEqual(await readLeft(world, KEY, "tools/run"), { rpm: 100, tpm: 1000 });
  });

  test("no resource is charged when one refuses, and the refusal names it", async (world) => {
    await world.repository.setSystemDefaults([RPM]);
    await world.repository.setResourceDefaults("search", [Limit.perHour("rpm", 1)]);
    await take(world, { rpm: 1 }, { resource: "search" });
    const request = call({ rpm: 1 }, { also: { draw: { rpm: 1 }, search: { rpm: 1 } } });
    const refusal = await getRefusal(world.limiter, request);
    assert.deepEqual(
      refusal.statuses.map(({ resource, exceeded, source }) => [resource, exceeded, source]),
      [
        [MODEL, false, "system"],
        ["draw", false, "system"],
        ["search", true, "resource"],
      ],
    );
    assert.equal(refusal.retryAfterSeconds, 3600);
    assert.deepEqual(await readLeft(world), { rpm: 100 });
    assert.deepEqual(await readLeft(world, KEY, "draw"), { rpm: 100 });
    const verdict = await world.limiter.check(request);
    assert.equal(verdict.allowed, false);
    assert.deepEqual(verdict.available, { rpm: 100 }, "of the call's own resource");
  });

  test("a debt on one of the resources refuses the whole call", async (world) => {
    await world.repository.setSystemDefaults([RPM, TPM]);
    await world.limiter.acquire(call({ rpm: 1 }, { resource: "search" }), (lease) =>
      lease.settle({ tpm: 2000 }),
    );
    const refusal = await getRefusal(world.limiter, call({ rpm: 1 }, { also: { search: {} } }));
    assert.deepEqual(
      [refusal.primaryViolation.resource, refusal.primaryViolation.limitName],
      ["search", "tpm"],
    );
  });

  test("each resource is settled by its own part of the lease", async (world) => {
    await world.repository.setSystemDefaults([RPM, TPM]);
    await world.limiter.acquire(
      call({ rpm: 1 }, { also: { search: { tpm: 100 } } }),
      async (lease) => {
        assert.deepEqual(lease.resources, [MODEL, "search"]);
        const search = lease.resourceLease("search");
        assert.deepEqual(search.consumed, { rpm: 0, tpm: 100 });
        search.settle({ tpm: 150 });
        await search.consume({ rpm: 3 });
        lease.settle({ tpm: 7 });
        assert.deepEqual(search.consumed, { rpm: 3, tpm: 150 });
        assert.deepEqual(lease.consumed, { rpm: 1, tpm: 7 });
      },
    );
    assert.deepEqual(await readLeft(world), { rpm: 99, tpm: 993 });
    assert.deepEqual(await readLeft(world, KEY, "search"), { rpm: 97, tpm: 850 });
  });

  test("a rollback gives back to every resource, and to the parent", async (world) => {
    await world.repository.setSystemDefaults([RPM]);
    await world.repository.createEntity("project");
    await world.repository.createEntity(KEY, { parentId: "project", cascade: true });
    const lease = await world.limiter.acquire(call({ rpm: 1 }, { also: { search: { rpm: 2 } } }));
    assert.deepEqual(await readLeft(world, "project", "search"), { rpm: 98 });
    await lease.rollback();
    for (const entityId of [KEY, "project"])
      for (const resource of [MODEL, "search"])
        assert.deepEqual(await readLeft(world, entityId, resource), { rpm: 100 });
  });

  test("refuses an invalid list of resources, and writes nothing", async (world) => {
    await world.repository.setSystemDefaults([RPM]);
    await take(world, { rpm: 1 });
    const before = await footprint(world.repository);
    const many = Object.fromEntries(
      Array.from({ length: 16 }, (_, index) => [`r${index}`, { rpm: 1 }]),
    );
    const bad = [
      { [MODEL]: { rpm: 1 } },
      { "": { rpm: 1 } },
      { "a#b": { rpm: 1 } },
      { search: { rpm: -1 } },
      { search: { nope: 1 } },
      many,
    ];
    for (const also of bad)
      await failsWith(
        ValidationError,
        () => world.limiter.acquire(call({ rpm: 1 }, { also })),
        JSON.stringify(also),
      );
    await failsWith(ValidationError, () =>
      world.limiter.acquire(call({ rpm: 1 }, { also: { search: { rpm: 1 } }, limits: [RPM] })),
    );
    assert.deepEqual(await footprint(world.repository), before);
    const lease = await world.limiter.acquire(call({ rpm: 1 }));
    await failsWith(ValidationError, () => lease.resourceLease("search"));
    await lease.commit();
  });

  test("a call may name sixteen resources", async (world) => {
    await world.repository.setSystemDefaults([RPM]);
    const also = Object.fromEntries(
      Array.from({ length: 15 }, (_, index) => [`r${index}`, { rpm: 1 }]),
    );
    await take(world, { rpm: 1 }, { also });
    assert.deepEqual(await readLeft(world, KEY, "r14"), { rpm: 99 });
  });

  test("nothing is charged if another resource of the call has no limits", async (world) => {
    await world.repository.setResourceDefaults(MODEL, [RPM]);
    await failsWith(ValidationError, () =>
      world.limiter.acquire(call({ rpm: 1 }, { also: { search: {} } })),
    );
    assert.deepEqual(await readLeft(world), { rpm: 100 });
  });
};
