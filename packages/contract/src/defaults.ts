import assert from "node:assert/strict";
import { type Amounts, Limit, RateLimiter, RateLimitExceeded, ValidationError } from "zae-limiter";
import {
  call,
  failsWith,
  fits,
  getRefusal,
  grants,
  KEY,
  MODEL,
  readLeft,
  RPM,
  take,
  TPM,
} from "./calls.ts";
import type { Topic, World } from "./world.ts";

const DEFAULTS = [RPM, TPM];

/** The same world with limiters that have these defaults. */
function withDefaults(world: World, defaults: readonly Limit[] = DEFAULTS): World {
  return { ...world, limiter: new RateLimiter({ repository: world.repository, defaults }) };
}

/** The level of each limit, as a refusal shows it. */
async function readSources(world: World, consume: Amounts): Promise<readonly string[]> {
  const { statuses } = await getRefusal(world.limiter, call(consume));
  return statuses.map(({ entityId, limitName, source }) => `${entityId} ${limitName} ${source}`);
}

/** Defaults in code: the level below the system's, which is never stored. */
export const defaultsTopic: Topic = (test) => {
  test("defaults of a limiter hold where nothing is stored, for every operation", async (plain) => {
    const world = withDefaults(plain);
    assert.deepEqual(await readLeft(world), { rpm: 100, tpm: 1000 });
    await world.limiter.acquire(call({ rpm: 40 }), async (lease) => {
      await lease.consume({ rpm: 10, tpm: 100 });
      await failsWith(RateLimitExceeded, () => lease.consume({ tpm: 901 }));
      lease.settle({ tpm: 300 });
    });
    assert.deepEqual(await readLeft(world), { rpm: 50, tpm: 700 });
    await world.limiter.charge({ entityId: KEY, resource: MODEL, amounts: { tpm: 900 } });
    assert.deepEqual(await readLeft(world), { rpm: 50, tpm: -200 });
    assert.equal(await world.limiter.timeUntilAvailable(KEY, MODEL, { rpm: 60 }), 12);
    assert.equal((await world.limiter.check(call({ rpm: 51 }))).allowed, false);
    assert.deepEqual(await readSources(world, { rpm: 51 }), [
      `${KEY} rpm constructor`,
      `${KEY} tpm constructor`,
    ]);
    await failsWith(ValidationError, () => world.limiter.tryAcquire(call({ images: 1 })));
    const waiting = take(world, { rpm: 50 }, { waitUpToMs: 60_000 });
    await world.pass(60_000);
    await waiting;
    const own = { limits: [Limit.perMinute("rpm", 5)] };
    assert.equal(await fits(world, { rpm: 6 }, own), false);
  });

  test("defaults of a limiter are never stored, and no other limiter has them", async (plain) => {
    const { repository } = plain;
    await take(withDefaults(plain), { rpm: 1 });
    assert.equal(await repository.resolveLimits(KEY, MODEL), undefined);
    assert.equal(await repository.getLevel({}), undefined);
    assert.deepEqual((await repository.getSystemDefaults()).limits, []);
    assert.deepEqual(await repository.listResourcesWithDefaults(), []);
    assert.deepEqual((await repository.getAuditEvents("$SYSTEM")).items, []);
    const error = await failsWith(ValidationError, () => take(plain, { rpm: 1 }));
    assert.match(error.message, /no limits are configured .* pass defaults to the RateLimiter/);
  });

  test("a stored level replaces defaults of the same name, and hides all with inherit: false", async (plain) => {
    const world = withDefaults(plain);
    const { repository } = plain;
    await take(world, { rpm: 10, tpm: 100 });
    await repository.setSystemDefaults([Limit.perMinute("rpm", 50)]);
    assert.deepEqual(await readLeft(world), { rpm: 50, tpm: 900 });
    assert.deepEqual(await readSources(world, { rpm: 51 }), [
      `${KEY} rpm system`,
      `${KEY} tpm constructor`,
    ]);
    await repository.setSystemDefaults([Limit.perMinute("rpm", 40)], { inherit: false });
    assert.equal((await repository.getLevel({}))?.inherit, false);
    assert.deepEqual(await readLeft(world), { rpm: 40 });
    await world.limiter.acquire(call({ rpm: 1, tpm: 5000 }), (lease) => {
      assert.deepEqual(lease.unlimited, ["tpm"], "the defaults still know the name");
      lease.settle({ tpm: 6000 });
    });
    const equal = await world.limiter.acquire(call({ rpm: 1 }));
    equal.settle({ tpm: 10 });
    await equal.commit();
    await repository.setLimits(KEY, [Limit.perMinute("rpm", 30)]);
    assert.deepEqual(
      await readLeft(world),
      { rpm: 30 },
      "an inheriting level below which one hides",
    );
    await repository.setSystemDefaults(undefined, { onUnavailable: "block" });
    assert.equal((await repository.getLevel({}))?.inherit, false, "settings change no list");
    await repository.deleteSystemDefaults();
    assert.deepEqual(await readLeft(world), { rpm: 30, tpm: 900 }, "shown again, as it was");
    await repository.deleteLimits(KEY);
    assert.equal((await readLeft(world))["rpm"], 38, "nothing is minted");
  });

  test("defaults hold for the parent too", async (plain) => {
    const world = withDefaults(plain);
    await world.repository.createEntity("org");
    for (const id of [KEY, "key-2"])
      await world.repository.createEntity(id, { parentId: "org", cascade: true });
    await take(world, { rpm: 60 });
    const { primaryViolation } = await getRefusal(
      world.limiter,
      call({ rpm: 60 }, { entityId: "key-2" }),
    );
    assert.deepEqual([primaryViolation.entityId, primaryViolation.source], ["org", "constructor"]);
    await world.repository.setLimits("org", [Limit.perMinute("rpm", 500)]);
    await world.pass(60_000);
    await take(world, { rpm: 50 });
    await take(world, { rpm: 50 }, { entityId: "key-2", limits: [RPM] });
    assert.deepEqual(await readLeft(world, "org"), { rpm: 0, tpm: 1000 });
  });

  test("limiters with different defaults grant no more than the larger, however they alternate", async (plain) => {
    const [large, small] = [100, 40].map((rate) =>
      withDefaults(plain, [Limit.perMinute("rpm", rate)]),
    );
    let granted = 0;
    for (let minute = 0; minute < 3; minute += 1) {
      for (let turn = 0; turn < 5; turn += 1)
        for (const world of [large!, small!]) granted += await grants(world, { rpm: 1 }, 30);
      await plain.pass(60_000);
    }
    assert.ok(granted <= 300, `${granted} were granted`);
    const both = withDefaults(plain, [...DEFAULTS, Limit.perMinute("images", 3)]);
    await take(both, { images: 3 });
    await take(large!, { rpm: 1 });
    assert.equal(await fits(both, { images: 1 }), false, "the other limiter refills nothing");
  });

  test("invalid defaults are refused", async ({ repository }) => {
    for (const defaults of [[], [RPM, RPM], [{ ...RPM, capacity: -1 }], RPM]) {
      const options = { repository, defaults: defaults as readonly Limit[] };
      const error = await failsWith(ValidationError, async () => new RateLimiter(options));
      assert.match(error.field, /defaults|capacity/);
    }
    const mistyped = { repository, default: [RPM] };
    const error = await failsWith(ValidationError, async () => new RateLimiter(mistyped));
    assert.match(error.message, /did you mean defaults/);
  });
};
