import assert from "node:assert/strict";
import { Limit, type Repository, ValidationError } from "zae-limiter";
import { call, failsWith, fits, grants, KEY, readLeft, MODEL, getRefusal, take } from "./calls.ts";
import type { Topic } from "./world.ts";

/** Reads the policy of the usual entity, as "level limit" in its order. */
async function readPolicy(repository: Repository, entityId = KEY): Promise<string> {
  const resolved = await repository.resolveLimits(entityId, MODEL);
  return (resolved?.limits ?? [])
    .map((limit) => `${resolved?.sources[limit.name]} ${Limit.format(limit)}`)
    .join(", ");
}

/** More than half of what one policy may hold. */
function many(letter: string): readonly Limit[] {
  return Array.from({ length: 17 }, (_, index) => Limit.perMinute(`${letter}${index}`, 1));
}

const SYSTEM = [Limit.perMinute("rpm", 60), Limit.perMinute("tpm", 10_000)];

/** Levels that add to those below them. */
export const inheritanceTopic: Topic = (test) => {
  test("a level that inherits replaces limits of the same name and keeps the others", async ({
    repository,
  }) => {
    await repository.setSystemDefaults(SYSTEM);
    await repository.setResourceDefaults(MODEL, [Limit.perHour("rph", 100)]);
    assert.equal(
      await readPolicy(repository),
      "resource rph:100/hour, system rpm:60/min, system tpm:10000/min",
    );
    await repository.setLimits(KEY, [Limit.perMinute("tpm", 5)]);
    assert.equal(
      await readPolicy(repository),
      "entity_default tpm:5/min, resource rph:100/hour, system rpm:60/min",
    );
    const own = { resource: MODEL, inherit: true };
    await repository.setLimits(KEY, [Limit.perMinute("rpm", 600)], own);
    assert.equal(
      await readPolicy(repository),
      "entity rpm:600/min, entity_default tpm:5/min, resource rph:100/hour",
    );
    assert.equal((await repository.resolveLimits(KEY, MODEL))?.source, "entity");
    assert.equal(
      await readPolicy(repository, "other"),
      "resource rph:100/hour, system rpm:60/min, system tpm:10000/min",
    );
  });

  test("the policy ends at the first stored level that does not inherit", async ({
    repository,
  }) => {
    await repository.setSystemDefaults(SYSTEM);
    await repository.setResourceDefaults(MODEL, [Limit.perHour("rph", 100)], { inherit: false });
    await repository.setLimits(KEY, [Limit.perMinute("rpm", 600)]);
    assert.equal(await readPolicy(repository), "entity_default rpm:600/min, resource rph:100/hour");
    await repository.deleteResourceDefaults(MODEL);
    assert.equal(await readPolicy(repository), "entity_default rpm:600/min, system tpm:10000/min");
    await repository.deleteSystemDefaults();
    assert.equal(await readPolicy(repository), "entity_default rpm:600/min");
  });

  test("inherit belongs to the list that it is set with", async ({ repository }) => {
    await repository.setSystemDefaults(SYSTEM);
    await repository.setLimits(KEY, [Limit.perMinute("rpm", 600)]);
    await repository.setLimits(KEY, [Limit.perMinute("rpm", 700)], { inherit: false });
    assert.equal(await readPolicy(repository), "entity_default rpm:700/min");
    await repository.setLimits(KEY, [Limit.perMinute("rpm", 800)]);
    assert.equal(await readPolicy(repository), "entity_default rpm:800/min, system tpm:10000/min");
    await repository.setResourceDefaults(MODEL, [Limit.perMinute("rpm", 9)]);
    await repository.setResourceDefaults(MODEL, [Limit.perMinute("rpm", 9)], { inherit: false });
    assert.equal(await readPolicy(repository, "other"), "resource rpm:9/min");
  });

  test("every stored level can be read back, also those that are hidden", async ({
    repository,
  }) => {
    const [rpm, tpm] = [Limit.perMinute("rpm", 600), Limit.perMinute("tpm", 1)];
    await repository.setSystemDefaults(SYSTEM);
    await repository.setResourceDefaults(MODEL, [tpm]);
    await repository.setLimits(KEY, [rpm], { inherit: false });
    await repository.setLimits(KEY, [tpm], { resource: MODEL });
    const resolved = await repository.resolveLimits(KEY, MODEL);
    assert.deepEqual(resolved?.levels, [
      { source: "entity", limits: [tpm], inherit: true },
      { source: "entity_default", limits: [rpm], inherit: false },
      { source: "resource", limits: [tpm], inherit: true },
      { source: "system", limits: SYSTEM, inherit: true },
    ]);
    assert.deepEqual(resolved.sources, { tpm: "entity", rpm: "entity_default" });
    assert.deepEqual(await repository.getLimits(KEY, { resource: MODEL }), [tpm]);
    assert.deepEqual(await repository.getResourceDefaults(MODEL), [tpm]);
  });

  test("the audit event of a change contains inherit", async ({ repository }) => {
    const limits = [Limit.perMinute("rpm", 600)];
    await repository.setLimits(KEY, limits);
    await repository.setLimits(KEY, limits, { inherit: false });
    await repository.setResourceDefaults(MODEL, limits);
    const details = async (id: string): Promise<readonly unknown[]> =>
      (await repository.getAuditEvents(id)).items.map((event) => event.details);
    assert.deepEqual(await details(KEY), [
      { limits, inherit: false },
      { limits, inherit: true },
    ]);
    assert.deepEqual(await details(`$RESOURCE:${MODEL}`), [{ limits, inherit: true }]);
  });

  test("a value of inherit that is not true or false is refused", async ({ repository }) => {
    const wrong = { inherit: "yes" } as unknown as { readonly inherit: boolean };
    const limits = [Limit.perMinute("rpm", 600)];
    await failsWith(ValidationError, () => repository.setLimits(KEY, limits, wrong));
    await failsWith(ValidationError, () => repository.setResourceDefaults(MODEL, limits, wrong));
    assert.deepEqual(await repository.getLimits(KEY), []);
    assert.deepEqual(await repository.getResourceDefaults(MODEL), []);
  });

  test("levels that come to more limits together than one policy may hold are refused", async (world) => {
    await world.repository.setSystemDefaults(many("a"));
    await world.repository.setLimits(KEY, many("b"));
    const error = await failsWith(ValidationError, () => take(world, { b0: 1 }));
    assert.match(error.message, /at most 32 limits.* entity_default, system /);
    await world.repository.setLimits(KEY, many("b"), { inherit: false });
    await take(world, { b0: 1 });
  });

  test("a refusal names the level of each limit", async ({ repository, limiter }) => {
    await repository.setSystemDefaults(SYSTEM);
    await repository.setLimits(KEY, [Limit.perMinute("rpm", 600)]);
    const refusal = await getRefusal(limiter, call({ rpm: 601, tpm: 10_001 }));
    assert.deepEqual(
      refusal.statuses.map(({ limitName, source }) => [limitName, source]),
      [
        ["rpm", "entity_default"],
        ["tpm", "system"],
      ],
    );
  });

  test("raising one limit with inherit keeps the others, and mints nothing", async (world) => {
    await world.repository.setSystemDefaults(SYSTEM);
    await take(world, { rpm: 60, tpm: 9000 });
    await world.repository.setLimits(KEY, [Limit.perMinute("rpm", 600)]);
    assert.deepEqual(await readLeft(world), { rpm: 0, tpm: 1000 });
    assert.equal(await fits(world, { rpm: 1, tpm: 1 }), false);
    await world.pass(1000);
    assert.equal(await grants(world, { rpm: 1, tpm: 1 }, 20), 10, "rpm earns at its new rate");
    await world.pass(60_000);
    await take(world, { rpm: 1, tpm: 10_000 });
    assert.equal(
      (await getRefusal(world.limiter, call({ tpm: 1 }))).primaryViolation.source,
      "system",
    );
  });
};
