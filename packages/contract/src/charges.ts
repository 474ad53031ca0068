import assert from "node:assert/strict";
import {
  type Amounts,
  type ChargeRequest,
  Limit,
  PermissionDenied,
  RateLimiter,
  RateLimiterUnavailable,
  ValidationError,
} from "zae-limiter";
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
  TPM,
} from "./calls.ts";
import { watch } from "./watch.ts";
import type { Topic, World } from "./world.ts";

const IMAGES = Limit.perMinute("images", 5);

/**
 * Consumption that has already happened: it is never refused, is charged once in every bucket, and
 * counts as usage and not as a request.
 */
export const chargesTopic: Topic = (test) => {
  test("a charge takes what it names, from a bucket that exists and from one that does not", async (world) => {
    await world.repository.setSystemDefaults([RPM, TPM]);
    await charge(world, { tpm: 300 });
    assert.deepEqual(await readLeft(world), { rpm: 100, tpm: 700 });
    await take(world, { rpm: 1, tpm: 100 });
    await charge(world, { rpm: 2, tpm: 50 });
    assert.deepEqual(await readLeft(world), { rpm: 97, tpm: 550 });
  });

  test("a charge is never refused: it causes debt, in a new bucket too, and adds to it", async (world) => {
    await world.repository.setSystemDefaults([RPM, TPM]);
    await charge(world, { tpm: 1500 });
    assert.deepEqual(await readLeft(world), { rpm: 100, tpm: -500 });
    const refusal = await getRefusal(world.limiter, call({ rpm: 1 }));
    assert.equal(refusal.retryAfterSeconds, 30);
    await charge(world, { rpm: 101, tpm: 250 });
    assert.deepEqual(await readLeft(world), { rpm: -1, tpm: -750 });
    await world.pass(44_999);
    assert.equal(await fits(world, {}), false);
    await world.pass(1);
    assert.equal(await fits(world, {}), true, "earned back, and nothing was minted");
    assert.equal((await readLeft(world))["tpm"], 0);
  });

  test("a charge cascades to the parent, each under its own limits", async (world) => {
    await createFamily(world);
    await world.repository.setLimits("project", [Limit.perMinute("tpm", 400)], { inherit: false });
    await charge(world, { rpm: 1, tpm: 500 });
    assert.deepEqual(await readLeft(world, "project"), { tpm: -100 });
    assert.deepEqual(await readLeft(world), { rpm: 99, tpm: -100 }, "the lower of both");
    await charge(world, { tpm: 40 }, { entityId: "project" });
    assert.deepEqual(await readLeft(world, "project"), { tpm: -140 });
  });

  test("a charge reaches every resource that it names", async (world) => {
    await world.repository.setSystemDefaults([RPM, TPM]);
    await charge(world, { tpm: 100 }, { also: { search: { rpm: 200 }, maps: {} } });
    assert.deepEqual(await readLeft(world), { rpm: 100, tpm: 900 });
    assert.deepEqual(await readLeft(world, KEY, "search"), { rpm: -100, tpm: 1000 });
    const resources = (await world.repository.getBuckets(KEY)).map(({ resource }) => resource);
    assert.deepEqual([...new Set(resources)].sort(), [MODEL, "search"]);
  });

  test("a charge counts as usage and not as a request, and by cascade at the parent", async (world) => {
    const { repository, limiter } = world;
    await createFamily(world);
    await take(world, { rpm: 1, tpm: 100 });
    await charge(world, { rpm: 3, tpm: 2000 });
    if (!repository.capabilities.usageSnapshots) return;
    const own = await repository.getUsageSummary({ entityId: KEY });
    assert.deepEqual([own.total, own.requests], [{ rpm: 4, tpm: 2100 }, 1]);
    const parent = await repository.getUsageSummary({ entityId: "project" });
    assert.deepEqual([parent.cascaded, parent.cascadedRequests], [{ rpm: 4, tpm: 2100 }, 1]);
    assert.equal((await repository.getUsageSummary({ resource: MODEL })).requests, 1);
    await limiter.charge({ entityId: "other", resource: MODEL, amounts: { rpm: 1 } });
    const other = await repository.getUsageSummary({ entityId: "other" });
    assert.deepEqual([other.total["rpm"], other.requests], [1, 0]);
  });

  test("a charge of nothing writes nothing, but is checked", async (world) => {
    await world.repository.setSystemDefaults([RPM, TPM]);
    const before = await footprint(world.repository);
    await charge(world, {});
    await charge(world, { rpm: 0, tpm: 0 }, { also: { search: { rpm: 0 } } });
    assert.deepEqual(await footprint(world.repository), before);
    await take(world, { rpm: 1 });
    const { writes } = world.repository.getStatistics();
    await charge(world, { rpm: 0 });
    assert.equal(world.repository.getStatistics().writes, writes);
    await failsWith(ValidationError, () => charge(world, { nothing: 0 }));
    await failsWith(ValidationError, () => charge(world, {}, { also: { search: { nothing: 0 } } }));
  });

  test("an amount that only another level limits is counted, and not charged", async (world) => {
    const { repository } = world;
    await repository.setSystemDefaults([RPM, IMAGES]);
    await repository.setLimits(KEY, [RPM, TPM], { inherit: false });
    await charge(world, { tpm: 10, images: 7 });
    assert.deepEqual(await readLeft(world), { rpm: 100, tpm: 990 });
    if (!repository.capabilities.usageSnapshots) return;
    const { total } = await repository.getUsageSummary({ entityId: KEY });
    assert.deepEqual([total["tpm"], total["images"]], [10, 7]);
  });

  test("a charge is decided with the current limits", async (world) => {
    await world.repository.setSystemDefaults([RPM]);
    await take(world, { rpm: 10 });
    await world.repository.setSystemDefaults([Limit.perMinute("rpm", 50), TPM]);
    await charge(world, { rpm: 60, tpm: 1 });
    assert.deepEqual(await readLeft(world), { rpm: -10, tpm: 999 });
  });

  test("concurrent charges and acquires add up", async (world) => {
    await createFamily(world);
    const granted: boolean[] = [];
    await Promise.all(
      Array.from({ length: 30 }, async (_, index) =>
        index % 3 === 0
          ? void granted.push(await fits(world, { rpm: 1, tpm: 10 }))
          : charge(world, { tpm: 7 }),
      ),
    );
    const calls = granted.filter(Boolean).length;
    assert.equal(calls, 10);
    const expected = { rpm: 100 - calls, tpm: 1000 - 20 * 7 - 10 * calls };
    assert.deepEqual(await readLeft(world), expected);
    assert.deepEqual(await readLeft(world, "project"), expected);
  });

  test("a charge to a deleted entity begins a new bucket", async (world) => {
    await createFamily(world);
    await charge(world, { tpm: 1500 });
    await world.repository.deleteEntity(KEY);
    await charge(world, { tpm: 10 });
    assert.deepEqual(await readLeft(world), { rpm: 100, tpm: 990 });
  });

  test("a bad charge is refused before anything is written", async (world) => {
    await world.repository.setSystemDefaults([RPM, TPM]);
    const before = await footprint(world.repository);
    const bad: readonly (readonly [Record<string, unknown>, string])[] = [
      [{ entityId: "" }, "entityId"],
      [{ entityId: "no#hash" }, "entityId"],
      [{ resource: 5 }, "resource"],
      [{ amounts: { tpm: -1 } }, "amounts.tpm"],
      [{ amounts: { tpm: 0.5 } }, "amounts.tpm"],
      [{ amounts: { tpm: Number.NaN } }, "amounts.tpm"],
      [{ amounts: { tpm: 1e300 } }, "amounts.tpm"],
      [{ amounts: { tpm: "5" } }, "amounts.tpm"],
      [{ amounts: undefined }, "amounts"],
      [{ amounts: [1] }, "amounts"],
      [{ amounts: { tpm: 1, unknown: 1 } }, "amounts.unknown"],
      [{ also: { search: { tpm: 1, unknown: 1 } } }, "also.search.unknown"],
      [{ also: [] }, "also"],
      [{ also: { [MODEL]: { tpm: 1 } } }, "also"],
      [{ also: { search: { tpm: -1 } } }, "also.search.tpm"],
      [{ consume: { tpm: 1 } }, "consume"],
      [{ limits: [RPM] }, "limits"],
      [{ onUnavailable: "allow" }, "onUnavailable"],
      [{ amount: { tpm: 1 } }, "amount"],
    ];
    for (const [change, field] of bad) {
      const request = { entityId: KEY, resource: MODEL, amounts: { tpm: 1 }, ...change };
      const error = await failsWith(
        ValidationError,
        () => world.limiter.charge(request as unknown as ChargeRequest),
        JSON.stringify(change),
      );
      assert.equal(error.field, field);
    }
    const error = await failsWith(ValidationError, () =>
      world.limiter.charge({ ...wanted({}), amount: {} } as ChargeRequest),
    );
    assert.match(error.message, /did you mean amounts\?/);
    for (const request of [undefined, null, "key-1", []])
      await failsWith(ValidationError, () =>
        world.limiter.charge(request as unknown as ChargeRequest),
      );
    assert.deepEqual(await footprint(world.repository), before);
  });

  test("a charge without any limits to charge is invalid", async (world) => {
    await failsWith(ValidationError, () => charge(world, { tpm: 1 }));
  });

  test("a charge is never degraded: it rejects, whatever onUnavailable says", async (world) => {
    await world.repository.setSystemDefaults([RPM, TPM], { onUnavailable: "allow" });
    for (const fault of ["error-before", "error-after"] as const) {
      const entityId = `of-${fault}`;
      const limiter = new RateLimiter({
        repository: faultyRepository(world.repository, (name) =>
          name === "charge" ? fault : undefined,
        ),
        onUnavailable: "allow",
      });
      const error = await failsWith(RateLimiterUnavailable, () =>
        limiter.charge(wanted({ tpm: 10 }, { entityId })),
      );
      assert.deepEqual([error.entityId, error.resource], [entityId, MODEL]);
      const expected = fault === "error-before" ? 1000 : 990;
      assert.equal((await readLeft(world, entityId))["tpm"], expected, "charged once at most");
    }
  });

  test("a denied charge rejects with PermissionDenied", async (world) => {
    await world.repository.setSystemDefaults([TPM]);
    const repository = new Proxy(world.repository, {
      get(target, property) {
        if (property === "charge") return () => Promise.reject(new PermissionDenied("read only"));
        return Reflect.get(target, property, target) as unknown;
      },
    });
    const limiter = new RateLimiter({ repository, onUnavailable: "allow" });
    await failsWith(PermissionDenied, () => limiter.charge(wanted({ tpm: 1 })));
  });

  test("a closed limiter rejects charges, after it has checked them", async (world) => {
    await world.repository.setSystemDefaults([TPM]);
    const limiter = new RateLimiter({ repository: world.repository, onUnavailable: "allow" });
    await limiter.close();
    await failsWith(RateLimiterUnavailable, () => limiter.charge(wanted({ tpm: 1 })));
    await failsWith(ValidationError, () => limiter.charge(wanted({ tpm: -1 })));
    assert.deepEqual(await readLeft(world), { tpm: 1000 });
  });

  test("a waiting call waits for tokens that a charge has taken", async (world) => {
    await world.repository.setSystemDefaults([Limit.perSecond("rps", 10)]);
    await take(world, { rps: 10 });
    const waiting = watch(world.limiter.acquire(call({ rps: 5 }, { waitUpToMs: 60_000 })));
    await world.pass(100);
    await charge(world, { rps: 10 });
    await world.pass(400);
    await world.pass(999);
    assert.equal(waiting.state, "pending");
    await world.pass(1);
    assert.equal(waiting.state, "fulfilled");
  });
};

/** A charge to the usual entity for the usual resource. */
function wanted(amounts: Amounts, more: Partial<ChargeRequest> = {}): ChargeRequest {
  return { entityId: KEY, resource: MODEL, amounts, ...more };
}

function charge(
  { limiter }: Pick<World, "limiter">,
  amounts: Amounts,
  more: Partial<ChargeRequest> = {},
): Promise<void> {
  return limiter.charge(wanted(amounts, more));
}

/** A key that cascades into a project. */
async function createFamily({ repository }: World): Promise<void> {
  await repository.setSystemDefaults([RPM, TPM]);
  await repository.createEntity("project");
  await repository.createEntity(KEY, { parentId: "project", cascade: true });
}
