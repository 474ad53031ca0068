import { channel, tracingChannel } from "node:diagnostics_channel";
import { context, metrics, SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { Limit, RateLimiter, type Repository } from "zae-limiter";
import { CHANNELS } from "zae-limiter/diagnostics";
import { MemoryRepository } from "zae-limiter/memory";
import { instrument, type OtelOptions } from "zae-limiter/otel";
import { faultyRepository, ManualClock } from "zae-limiter/testing";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { CollectedTelemetry } from "../../test/support/collected-telemetry.ts";
import type { Disposable } from "../repository/platform-types.ts";

const CALL = { entityId: "customer-7", resource: "gpt-4", consume: { rpm: 1, tpm: 100 } };

let clock: ManualClock;
let repository: MemoryRepository;
let limiter: RateLimiter;
let collected: CollectedTelemetry;
let running: Disposable[];

beforeEach(async () => {
  clock = new ManualClock();
  repository = new MemoryRepository({ clock });
  await repository.setSystemDefaults([Limit.perMinute("rpm", 10), Limit.perMinute("tpm", 1000)]);
  limiter = new RateLimiter({ repository });
  collected = new CollectedTelemetry();
  running = [];
});

afterEach(async () => {
  for (const telemetry of running) telemetry[Symbol.dispose]();
  await collected.stop();
  expect(isHeard()).toBe(false);
});

function start(options: OtelOptions = {}): Disposable {
  const telemetry = instrument({
    meterProvider: collected.meterProvider,
    tracerProvider: collected.tracerProvider,
    ...options,
  });
  running.push(telemetry);
  return telemetry;
}

function isHeard(): boolean {
  return (
    tracingChannel(CHANNELS.acquire).hasSubscribers ||
    [CHANNELS.end, CHANNELS.charge, CHANNELS.stream].some((name) => channel(name).hasSubscribers)
  );
}

/** A repository on which some operations fail. */
function failing(...operations: readonly string[]): Repository {
  return faultyRepository(repository, (operation) =>
    operations.includes(operation) ? "error-before" : undefined,
  );
}

/** The series of one instrument, without the prefix of the keys. */
async function points(name: string): Promise<readonly (readonly [object, number])[]> {
  return (await collected.series(`zae_limiter.${name}`)).map(({ attributes, sum, count }) => [
    Object.fromEntries(
      Object.entries(attributes).map(([key, value]) => [key.replace("zae_limiter.", ""), value]),
    ),
    count ?? sum,
  ]);
}

describe("metrics", () => {
  it("count acquires by outcome, and tokens by resource and limit", async () => {
    start();
    await limiter.acquire({ ...CALL, also: { search: { rpm: 2 } } }, (lease) => {
      lease.settle({ tpm: 40 });
      lease.resourceLease("search").settle({ rpm: 3 });
    });
    await limiter.acquire(CALL, () => Promise.reject(new Error("work"))).catch(() => {});
    await limiter.tryAcquire({ ...CALL, consume: { tpm: 2000 } });
    await limiter.acquire({ ...CALL, consume: { no: 1 } }).catch(() => {});
    const away = new RateLimiter({ repository: failing("consume"), onUnavailable: "allow" });
    await away.acquire(CALL, () => {});
    const [own, search] = [{ resource: "gpt-4" }, { resource: "search" }];
    expect(await points("acquire.duration")).toEqual([
      [{ ...own, outcome: "granted" }, 2],
      [{ ...own, outcome: "refused" }, 1],
      [{ ...own, outcome: "error", "error.type": "ERR_LIMITER_VALIDATION" }, 1],
      [{ ...own, outcome: "degraded" }, 1],
    ]);
    expect(await points("tokens.taken")).toEqual([
      [{ ...own, limit: "rpm" }, 2],
      [{ ...own, limit: "tpm" }, 200],
      [{ ...search, limit: "rpm" }, 2],
    ]);
    expect(await points("tokens.returned")).toEqual([
      [{ ...own, limit: "tpm" }, 160],
      [{ ...own, limit: "rpm" }, 1],
    ]);
    expect(await points("tokens.charged")).toEqual([[{ ...search, limit: "rpm" }, 1]]);
    expect(await points("lease.duration")).toEqual([
      [{ ...own, how: "commit" }, 2],
      [{ ...own, how: "rollback" }, 1],
    ]);
    expect(await points("leases.open")).toEqual([[own, 0]]);
    const ratios = await collected.series("zae_limiter.estimate.ratio");
    expect(ratios.map(({ sum, count }) => [sum, count])).toEqual([
      [1, 1],
      [0.4, 1],
      [1.5, 1],
    ]);
    expect(await points("wait.duration")).toEqual([]);
  });

  it("measure waits and leases by the repository's clock", async () => {
    start();
    await limiter.acquire({ ...CALL, consume: { rpm: 10 } }, () => {});
    const waiting = limiter.acquire({ ...CALL, waitUpToMs: 60_000 });
    await clock.advance(6_000);
    const lease = await waiting;
    expect(await points("leases.open")).toEqual([[{ resource: "gpt-4" }, 1]]);
    await clock.advance(1_500);
    await lease.commit();
    const [waited] = await collected.series("zae_limiter.wait.duration");
    expect(waited).toMatchObject({ sum: 6, count: 1, unit: "s" });
    const [held] = await collected.series("zae_limiter.lease.duration");
    expect(held).toMatchObject({ sum: 1.5, count: 2, unit: "s" });
  });

  it("have the limit that refused, its kind, its level, and whose it is", async () => {
    const tpd = Limit.quota("tpm", 50, { every: "day", zone: "UTC" });
    await repository.createEntity("org");
    await repository.createEntity("customer-7", { parentId: "org", cascade: true });
    await repository.setResourceDefaults("search", [Limit.perMinute("rpm", 5)]);
    await repository.setLimits("org", [tpd], { resource: "gpt-4", inherit: false });
    start();
    await limiter.tryAcquire(CALL);
    await limiter.tryAcquire({ ...CALL, consume: { rpm: 20 }, also: { search: { rpm: 6 } } });
    expect(await points("refusals")).toEqual([
      [{ resource: "gpt-4", limit: "tpm", kind: "quota", level: "entity", of: "parent" }, 1],
      [{ resource: "gpt-4", limit: "rpm", kind: "rate", level: "system", of: "entity" }, 1],
      [{ resource: "search", limit: "rpm", kind: "rate", level: "resource", of: "resource" }, 1],
      [{ resource: "search", limit: "rpm", kind: "rate", level: "resource", of: "parent" }, 1],
    ]);
  });

  it("count ends that could not be written, and nothing as returned", async () => {
    start();
    const flaky = new RateLimiter({
      repository: failing("settle", "giveBack"),
      onSettlementFailed: () => {},
    });
    await flaky.acquire(CALL, (lease) => lease.settle({ tpm: 1 }));
    await flaky.acquire(CALL, () => Promise.reject(new Error("work"))).catch(() => {});
    expect(await points("settlement.failures")).toEqual([
      [{ resource: "gpt-4", "error.type": "ERR_LIMITER_UNAVAILABLE" }, 2],
    ]);
    expect(await points("tokens.returned")).toEqual([]);
    expect(await points("leases.open")).toEqual([[{ resource: "gpt-4" }, 0]]);
  });

  it("distinguish 200 resources, and count all others as other", async () => {
    start();
    for (let index = 0; index < 210; index += 1)
      await limiter.acquire({ ...CALL, resource: `model-${index}` }, () => {});
    await limiter.acquire({ ...CALL, resource: "model-0" }, () => {});
    const acquires = await points("acquire.duration");
    expect(acquires).toHaveLength(201);
    expect(acquires[0]).toEqual([{ resource: "model-0", outcome: "granted" }, 2]);
    expect(acquires.at(-1)).toEqual([{ resource: "other", outcome: "granted" }, 10]);
    expect(
      new Set((await collected.series()).map((one) => one.attributes[`zae_limiter.resource`])).size,
    ).toBe(201);
  });

  it("never hold the id of an entity", async () => {
    const ids = ["customer-7", "acme:user@example.com", "constructor", "9.9.9.9", "AbortError-1"];
    await repository.createEntity("parent-of-all");
    for (const entityId of ids)
      await repository.createEntity(entityId, { parentId: "parent-of-all", cascade: true });
    start({ attributes: ({ entityId }) => ({ secret: entityId }), repositories: [repository] });
    const away = new RateLimiter({
      repository: failing("consume", "giveBack"),
      onSettlementFailed: () => {},
    });
    for (const entityId of ids) {
      const call = { ...CALL, entityId };
      class Named extends Error {}
      const named = Object.assign(new Named(entityId), { name: entityId, code: entityId });
      await limiter.acquire(call, () => Promise.reject(named)).catch(() => {});
      await limiter.tryAcquire({ ...call, consume: { tpm: 2000 } });
      await away.acquire(call).catch(() => {});
      for (const reason of [entityId, named])
        await limiter
          .acquire({ ...call, waitUpToMs: 1, signal: AbortSignal.abort(reason) })
          .catch(() => {});
    }
    const series = await collected.series();
    expect(series.length).toBeGreaterThan(10);
    const types = new Set(series.map(({ attributes }) => attributes["error.type"]));
    expect([...types].filter((type) => type !== undefined)).toEqual([
      "ERR_LIMITER_UNAVAILABLE",
      "_OTHER",
      "Named",
    ]);
    const values = series.flatMap(({ attributes }) => Object.values(attributes).map(String));
    for (const id of [...ids, "parent-of-all"])
      expect(values.filter((value) => value.includes(id))).toEqual([]);
  });
});

describe("spans", () => {
  it("are internal, have the outcome, and name no entity", async () => {
    start();
    await limiter.acquire(CALL, (lease) => lease.consume({ tpm: 1 }));
    await limiter.tryAcquire({ ...CALL, consume: { tpm: 950 } });
    await limiter.tryAcquire({ ...CALL, consume: { tpm: 2000 } });
    const away = new RateLimiter({ repository: failing("consume") });
    await away.acquire(CALL).catch(() => {});
    expect(collected.spans.map(({ name, kind }) => [name, kind])).toEqual(
      Array.from({ length: 5 }, () => ["acquire gpt-4", SpanKind.INTERNAL]),
    );
    const common = { "zae_limiter.namespace": "default", "zae_limiter.resource": "gpt-4" };
    const refused = { "zae_limiter.outcome": "refused", "zae_limiter.limit": "tpm" };
    expect(collected.spans.map(({ attributes }) => attributes)).toEqual([
      { ...common, "zae_limiter.outcome": "granted" },
      { ...common, "zae_limiter.outcome": "granted", "zae_limiter.extending": true },
      { ...common, ...refused, "zae_limiter.retry_after": 3.06 },
      { ...common, ...refused },
      { ...common, "zae_limiter.outcome": "error", "error.type": "ERR_LIMITER_UNAVAILABLE" },
    ]);
    expect(collected.spans.map(({ status }) => status)).toEqual([
      ...Array.from({ length: 4 }, () => ({ code: SpanStatusCode.UNSET })),
      { code: SpanStatusCode.ERROR },
    ]);
    expect(
      JSON.stringify(collected.spans.map(({ attributes, events }) => [attributes, events])),
    ).not.toContain("customer-7");
  });

  it("name the entity and further attributes if asked to", async () => {
    start({
      entityOnSpans: true,
      attributes: ({ outcome, consume }) => ({ "app.tpm": consume["tpm"]!, "app.out": outcome! }),
    });
    await limiter.acquire({ ...CALL, waitUpToMs: 5 }, () => {});
    expect(collected.spans[0]!.attributes).toMatchObject({
      "zae_limiter.entity.id": "customer-7",
      "zae_limiter.waited": 0,
      "app.tpm": 100,
      "app.out": "granted",
    });
  });

  it("are children of the active span, or events on it", async () => {
    context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
    try {
      const tracer = collected.tracerProvider.getTracer("test");
      const within = (name: string): Promise<void> =>
        tracer.startActiveSpan(name, async (span) => {
          await limiter.acquire(CALL, () => {});
          span.end();
        });
      const spans = start();
      await within("outer");
      const [inner, outer] = collected.spans;
      expect(inner!.parentSpanContext?.spanId).toBe(outer!.spanContext().spanId);
      spans[Symbol.dispose]();
      start({ spans: "none" });
      await within("with an event");
      await limiter.acquire(CALL, () => {});
      expect(collected.spans.slice(2).map(({ name, events }) => [name, events.length])).toEqual([
        ["with an event", 1],
      ]);
      expect(collected.spans[2]!.events[0]).toMatchObject({
        name: "zae_limiter.acquire",
        attributes: { "zae_limiter.resource": "gpt-4", "zae_limiter.outcome": "granted" },
      });
    } finally {
      context.disable();
    }
  });
});

describe("statistics of stores", () => {
  it("are counters by namespace, added up over repositories", async () => {
    const other = new MemoryRepository({ namespace: "default" });
    const tenant = new MemoryRepository({ namespace: "tenant" });
    const first = readCounted(repository, 3);
    start({ repositories: [first, first, readCounted(other, 4), readCounted(tenant, 5)] });
    expect(await points("store.requests")).toEqual([
      [{ namespace: "default" }, 7],
      [{ namespace: "tenant" }, 5],
    ]);
    expect(await points("store.splits")).toEqual([
      [{ namespace: "default" }, 4],
      [{ namespace: "tenant" }, 2],
    ]);
    const names = (await collected.series()).map(({ name }) => name);
    expect([...new Set(names)]).toEqual(
      [
        "requests",
        "writes",
        "failed_conditions",
        "retries",
        "batches",
        "refusals_from_memory",
        "splits",
      ].map((name) => `zae_limiter.store.${name}`),
    );
  });
});

describe("instrument", () => {
  it("leaves nothing behind when it is disposed of, once for each call", async () => {
    const statistics = vi.spyOn(repository, "getStatistics");
    const first = start({ repositories: [repository] });
    const second = start();
    await limiter.acquire(CALL, () => {});
    expect(await points("acquire.duration")).toEqual([
      [{ resource: "gpt-4", outcome: "granted" }, 2],
    ]);
    first[Symbol.dispose]();
    first[Symbol.dispose]();
    expect(isHeard()).toBe(true);
    const asked = statistics.mock.calls.length;
    expect(asked).toBeGreaterThan(0);
    await limiter.acquire(CALL, () => {});
    expect(await points("acquire.duration")).toEqual([
      [{ resource: "gpt-4", outcome: "granted" }, 3],
    ]);
    second[Symbol.dispose]();
    expect(isHeard()).toBe(false);
    await collected.series();
    expect(statistics).toHaveBeenCalledTimes(asked);
    expect(collected.spans).toHaveLength(3);
  });

  it("counts a lease as a whole or not at all, and none as open when it stops", async () => {
    const before = await limiter.acquire(CALL);
    const first = start();
    const between = await limiter.acquire(CALL);
    start();
    await before.consume({ tpm: 5 });
    await before.rollback();
    expect(await points("tokens.returned")).toEqual([]);
    expect(await points("leases.open")).toEqual([[{ resource: "gpt-4" }, 1]]);
    first[Symbol.dispose]();
    expect(await points("leases.open")).toEqual([[{ resource: "gpt-4" }, 0]]);
    await between.rollback();
    expect(await points("leases.open")).toEqual([[{ resource: "gpt-4" }, 0]]);
    expect(await points("tokens.returned")).toEqual([]);
  });

  it("uses the global providers unless it is given others", async () => {
    metrics.setGlobalMeterProvider(collected.meterProvider);
    trace.setGlobalTracerProvider(collected.tracerProvider);
    try {
      running.push(instrument());
      await limiter.acquire(CALL, () => {});
      expect(await points("acquire.duration")).toHaveLength(1);
      expect(collected.spans).toHaveLength(1);
    } finally {
      metrics.disable();
      trace.disable();
    }
  });

  it("refuses options that it does not know", () => {
    expect(() => instrument({ span: "none" } as OtelOptions)).toThrow("did you mean spans?");
    expect(() => instrument({ spans: "all" } as unknown as OtelOptions)).toThrow(
      'must be "acquire" or "none"',
    );
    const repositories = repository as unknown as OtelOptions["repositories"] & object;
    expect(() => instrument({ repositories })).toThrow("must be an array of repositories");
    const attributes = {} as unknown as OtelOptions["attributes"] & object;
    expect(() => instrument({ attributes })).toThrow("must be a function");
    expect(isHeard()).toBe(false);
  });
});

/** A repository that says how many requests it has sent. */
function readCounted(inner: Repository, requests: number): Repository {
  return new Proxy(inner, {
    get: (target, property) =>
      property === "getStatistics"
        ? () => ({ ...target.getStatistics(), requests, splits: 2 })
        : (Reflect.get(target, property, target) as unknown),
  });
}
