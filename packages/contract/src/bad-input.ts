import assert from "node:assert/strict";
import { inspect } from "node:util";
import {
  type AcquireRequest,
  type Amounts,
  InvalidIdentifierError,
  InvalidNameError,
  Limit,
  ValidationError,
} from "zae-limiter";
import { call, failsWith, footprint, KEY, MODEL, RPM, take, TPM } from "./calls.ts";
import type { Topic, World } from "./world.ts";

/** Invalid amounts, by what is wrong with them. */
const BAD_AMOUNTS: Readonly<Record<string, unknown>> = {
  negative: -500,
  fractional: 1.23456,
  NaN: Number.NaN,
  infinite: Infinity,
  unsafe: Number.MAX_SAFE_INTEGER,
  "beyond safe": 2 ** 60,
  text: "5",
  null: null,
  undefined: undefined,
  "big integer": 5n,
  list: [5],
  boolean: true,
};

const BAD_IDENTIFIERS: readonly unknown[] = [
  "",
  "x".repeat(257),
  "a#b",
  "key-1\n",
  " key",
  "-key",
  "a b",
  "ключ",
  undefined,
  null,
  5,
  {},
];
const BAD_RESOURCES: readonly unknown[] = [
  "",
  "x".repeat(65),
  "a#b",
  "gpt-4\n",
  "4gpt",
  "_default_",
  "a b",
  undefined,
  null,
  5,
];

/** Promise 9: bad input is refused before anything is written. */
export const badInputTopic: Topic = (test) => {
  for (const [fault, amount] of Object.entries(BAD_AMOUNTS)) {
    const tag = fault === "fractional" ? "W-36" : "W-37";
    test(`refuses an amount that is ${fault}, wherever it is given, and writes nothing [${tag}]`, async (world) => {
      const before = await prepare(world);
      const amounts = { rpm: 1, tpm: amount } as Amounts;
      const { limiter } = world;
      const error = await failsWith(ValidationError, () => limiter.acquire(call(amounts)));
      assert.equal(error.field, "consume.tpm");
      assert.ok(error.reason.length > 0 && error.value.length <= 50);
      await failsWith(ValidationError, () =>
        limiter.tryAcquire(call({ rpm: 1 }, { also: { search: amounts } })),
      );
      await failsWith(ValidationError, () => limiter.check(call(amounts)));
      await failsWith(ValidationError, () => limiter.timeUntilAvailable(KEY, MODEL, amounts));
      assert.deepEqual(await footprint(world.repository), before);
      const lease = await limiter.acquire(call({ rpm: 1 }));
      const charged = await footprint(world.repository);
      await failsWith(ValidationError, () => lease.consume(amounts), "consume");
      await failsWith(ValidationError, () => lease.release(amounts), "release");
      // A total that is missing is not a fault: the estimate stays.
      if (fault === "null" || fault === "undefined") lease.settle(amounts);
      else await failsWith(ValidationError, () => lease.settle(amounts), "settle");
      await failsWith(ValidationError, () => lease.adjust(amounts), "adjust");
      assert.deepEqual(lease.consumed, { rpm: 1, tpm: 0 });
      await lease.commit();
      assert.deepEqual(await footprint(world.repository), charged);
    });
  }

  test("refuses unknown limit names, and lists the known ones [W-37]", async (world) => {
    const before = await prepare(world);
    const unknown: readonly Amounts[] = [
      { nope: 1 },
      { rpm: 1, RPM: 1 },
      { wcu: 1 },
      { toString: 1 },
      { constructor: 0 },
      { "": 1 },
    ];
    for (const amounts of unknown) {
      const error = await failsWith(
        ValidationError,
        () => world.limiter.acquire(call(amounts)),
        JSON.stringify(amounts),
      );
      assert.match(error.reason, /rpm/);
    }
    await failsWith(ValidationError, () =>
      world.limiter.acquire(call(JSON.parse('{"__proto__": 1}') as Amounts)),
    );
    assert.deepEqual(await footprint(world.repository), before);
    const lease = await world.limiter.acquire(call({ rpm: 1 }));
    const charged = await footprint(world.repository);
    for (const amounts of unknown) {
      await failsWith(
        ValidationError,
        () => lease.consume(amounts),
        `consume ${JSON.stringify(amounts)}`,
      );
      await failsWith(
        ValidationError,
        () => lease.adjust(amounts),
        `adjust ${JSON.stringify(amounts)}`,
      );
      await failsWith(
        ValidationError,
        () => lease.release(amounts),
        `release ${JSON.stringify(amounts)}`,
      );
      await failsWith(
        ValidationError,
        () => lease.settle(amounts),
        `settle ${JSON.stringify(amounts)}`,
      );
    }
    await lease.commit();
    assert.deepEqual(await footprint(world.repository), charged);
  });

  test("refuses amounts that are not an object [W-37]", async (world) => {
    const before = await prepare(world);
    for (const value of [
      undefined,
      null,
      5,
      "rpm",
      [1],
      true,
      new Map([["rpm", 1]]),
      new Set(["rpm"]),
    ]) {
      const amounts = value as unknown as Amounts;
      await failsWith(ValidationError, () => world.limiter.acquire(call(amounts)), inspect(value));
      await failsWith(
        ValidationError,
        () => world.limiter.acquire(call({ rpm: 1 }, { also: { search: amounts } })),
        inspect(value),
      );
    }
    const also = new Map([["search", { rpm: 1 }]]) as unknown as Record<string, Amounts>;
    await failsWith(ValidationError, () => world.limiter.acquire(call({ rpm: 1 }, { also })));
    assert.deepEqual(await footprint(world.repository), before);
  });

  test("charges the amounts it checked, even if a getter returns different ones each time", async (world) => {
    await world.repository.setSystemDefaults([RPM, TPM]);
    const lease = await world.limiter.acquire(call(fickle({ tpm: 10 }, { tpm: -500 })));
    await lease.consume(fickle({ tpm: 10 }, { tpm: -500 }));
    assert.equal(lease.consumed["tpm"], 20);
    lease.release(fickle({ tpm: 1 }, { tpm: -500 }));
    assert.equal(lease.consumed["tpm"], 19);
    lease.adjust(fickle({ tpm: -1 }, { tpm: 0.5 }));
    assert.equal(lease.consumed["tpm"], 18);
    lease.settle(fickle({ tpm: 30 }, { tpm: -500 }));
    assert.equal(lease.consumed["tpm"], 30);
    await lease.commit();
    assert.equal((await world.limiter.available(KEY, MODEL))["tpm"], TPM.capacity - 30);
  });

  test("refuses a request that is not an object", async (world) => {
    const before = await prepare(world);
    for (const value of [undefined, null, 5, "key-1"]) {
      const request = value as unknown as AcquireRequest;
      await failsWith(ValidationError, () => world.limiter.acquire(request), String(value));
      await failsWith(ValidationError, () => world.limiter.tryAcquire(request), String(value));
      await failsWith(ValidationError, () => world.limiter.check(request), String(value));
    }
    assert.deepEqual(await footprint(world.repository), before);
  });

  test("refuses invalid identifiers, wherever they are given", async (world) => {
    const { repository, limiter } = world;
    const before = await prepare(world);
    for (const value of BAD_IDENTIFIERS) {
      const id = value as string;
      const uses: (() => unknown)[] = [
        () => limiter.acquire(call({ rpm: 1 }, { entityId: id })),
        () => limiter.check(call({ rpm: 1 }, { entityId: id })),
        () => limiter.available(id, MODEL),
        () => repository.createEntity(id),
        () => repository.getEntity(id),
        () => repository.deleteEntity(id),
        () => repository.getChildren(id),
        () => repository.setLimits(id, [RPM]),
        () => repository.getLimits(id),
        () => repository.deleteLimits(id),
        () => repository.getBuckets(id),
        () => repository.resolveLimits(id, MODEL),
        () => repository.getAuditEvents(id),
      ];
      for (const use of uses) {
        const error = await failsWith(
          InvalidIdentifierError,
          use,
          `${use.toString()} with ${JSON.stringify(value)}`,
        );
        assert.ok(error.value.length <= 50);
      }
    }
    assert.deepEqual(await footprint(repository), before);
  });

  test("refuses invalid resource names, wherever they are given", async (world) => {
    const { repository, limiter } = world;
    const before = await prepare(world);
    for (const value of BAD_RESOURCES) {
      const resource = value as string;
      const uses: (() => unknown)[] = [
        () => limiter.acquire(call({ rpm: 1 }, { resource })),
        () => repository.setResourceDefaults(resource, [RPM]),
        () => repository.getResourceDefaults(resource),
        () => repository.deleteResourceDefaults(resource),
        () => repository.resolveLimits(KEY, resource),
        () => repository.getResourceCapacity(resource, "rpm"),
      ];
      for (const use of uses)
        await failsWith(InvalidNameError, use, `${use.toString()} with ${JSON.stringify(value)}`);
      if (value === undefined || value === "_default_") continue;
      await failsWith(
        InvalidNameError,
        () => repository.setLimits(KEY, [RPM], { resource }),
        JSON.stringify(value),
      );
    }
    assert.deepEqual(await footprint(repository), before);
  });

  test("refuses invalid limits at every level [W-37]", async (world) => {
    const { repository } = world;
    const before = await prepare(world);
    const bad: readonly unknown[] = [
      [],
      undefined,
      "rpm:100",
      [RPM, TPM, RPM],
      [{ ...RPM, name: "wcu" }],
      [{ ...RPM, name: "__proto__" }],
      [{ ...RPM, name: "1st" }],
      [{ ...RPM, name: "a b" }],
      [{ ...RPM, name: "a#b" }],
      [{ ...RPM, name: "rpm\n" }],
      [{ ...RPM, name: "x".repeat(65) }],
      [{ ...RPM, name: "" }],
      [{ ...RPM, name: undefined }],
      ...[
        0,
        -1,
        1.5,
        Number.NaN,
        Infinity,
        Number.MAX_SAFE_INTEGER,
        "100",
        null,
        undefined,
      ].flatMap((value) => [
        [{ ...RPM, capacity: value }],
        [{ ...RPM, refillAmount: value }],
        [{ ...RPM, refillPeriodSeconds: value }],
      ]),
      [{ ...RPM, kind: "quota" }],
      [null],
    ];
    for (const value of bad) {
      const limits = value as readonly Limit[];
      const text = JSON.stringify(value);
      await failsWith(
        ValidationError,
        () => repository.setSystemDefaults(limits),
        `system ${text}`,
      );
      await failsWith(
        ValidationError,
        () => repository.setResourceDefaults(MODEL, limits),
        `resource ${text}`,
      );
      await failsWith(ValidationError, () => repository.setLimits(KEY, limits), `entity ${text}`);
    }
    assert.deepEqual(await footprint(repository), before);
  });

  test("refuses unknown options, which would silently have no effect", async (world) => {
    const { repository } = world;
    const before = await prepare(world);
    const mistyped: Readonly<Record<string, () => Promise<unknown>>> = {
      history: () => repository.deleteEntity(KEY, { histroy: true } as object),
      resource: () => repository.setLimits(KEY, [RPM], { resourse: MODEL } as object),
      parentId: () => repository.createEntity("new", { parent_id: KEY } as object),
      inherit: () => repository.setResourceDefaults(MODEL, [RPM], { inherits: true } as object),
      limit: () => repository.getAuditEvents(KEY, { limits: 5 } as object),
    };
    for (const [name, work] of Object.entries(mistyped))
      assert.match((await failsWith(ValidationError, work)).reason, new RegExp(`mean ${name}`));
    assert.deepEqual(await footprint(repository), before);
  });

  test("refuses kinds and options of limits that no backend decides yet", async (world) => {
    const { repository } = world;
    const before = await prepare(world);
    for (const text of [
      "rpm:100/inflight",
      "rpm:100/min[soft]",
      "rpm:100/min[sat,sun@Europe/Berlin=50%]",
    ]) {
      const limits = [Limit.parse(text)];
      const declared = { resources: { [MODEL]: { limits, inherit: false } }, entities: {} };
      const state = await repository.getProvisionerState();
      const calls: Readonly<Record<string, () => Promise<unknown>>> = {
        system: () => repository.setSystemDefaults(limits),
        resource: () => repository.setResourceDefaults(MODEL, limits),
        entity: () => repository.setLimits(KEY, limits),
        declared: () => repository.putProvisionerState({ ...state, applied: declared }),
        acquire: () => world.limiter.acquire(call({ rpm: 1 }, { limits })),
        check: () => world.limiter.check(call({ rpm: 1 }, { limits })),
      };
      for (const [name, work] of Object.entries(calls)) {
        const error = await failsWith(ValidationError, work, `${name} ${text}`);
        assert.match(error.reason, /is not supported yet/);
      }
    }
    assert.deepEqual(await footprint(repository), before);
  });

  test("refuses invalid options of the system defaults", async (world) => {
    const { repository } = world;
    const before = await prepare(world);
    for (const days of [0, -1, 1.5, Number.NaN, "7" as unknown as number]) {
      await failsWith(ValidationError, () =>
        repository.setSystemDefaults([RPM], { auditRetentionDays: days }),
      );
      await failsWith(ValidationError, () =>
        repository.setSystemDefaults([RPM], { usageRetentionDays: days }),
      );
    }
    await failsWith(ValidationError, () =>
      repository.setSystemDefaults([RPM], { onUnavailable: "maybe" as "allow" }),
    );
    await failsWith(ValidationError, () =>
      world.limiter.acquire(call({ rpm: 1 }, { onUnavailable: "maybe" as "allow" })),
    );
    assert.deepEqual(await footprint(repository), before);
  });

  test("refuses an invalid list of namespaces", async ({ repository }) => {
    const before = await repository.listNamespaces();
    for (const names of ["abc", undefined, null, 5, { a: 1 }, ["tenant", 5], ["tenant", "a#b"]])
      await failsWith(
        ValidationError,
        () => repository.registerNamespaces(names as unknown as string[]),
        JSON.stringify(names),
      );
    assert.deepEqual(await repository.listNamespaces(), before);
  });

  test("refuses an invalid version record", async ({ repository }) => {
    const before = await repository.getVersionRecord();
    const bad = [
      undefined,
      null,
      {},
      { schemaVersion: 1 },
      { schemaVersion: "1.0.0", lambdaVersion: "x" },
      { schemaVersion: "1.0.0", updatedBy: 5 },
    ];
    for (const value of bad)
      await failsWith(
        ValidationError,
        () => repository.setVersionRecord(value as { schemaVersion: string }),
        JSON.stringify(value),
      );
    assert.deepEqual(await repository.getVersionRecord(), before);
  });
};

/** Creates a bucket that an invalid call could damage. Returns the footprint. */
async function prepare(world: World): Promise<unknown> {
  await world.repository.setSystemDefaults([RPM, TPM]);
  await take(world, { rpm: 10, tpm: 10 });
  return footprint(world.repository);
}

/** Amounts whose getters return `first` on the first read, and `then` afterwards. */
function fickle(first: Amounts, then: Amounts): Amounts {
  const amounts = {};
  for (const name of Object.keys(first)) {
    let reads = 0;
    Object.defineProperty(amounts, name, {
      enumerable: true,
      get: () => ((reads += 1) === 1 ? first[name] : then[name]),
    });
  }
  return amounts;
}
