/*
 * Random histories of everything that a limiter can do: afterwards the sums of the counters are the
 * usage that the repository has counted, by resource and limit. Usage is asked for by resource
 * alone, so it is what the entities' own calls consumed: what came to parents by cascade is not
 * included, and no counter counts it.
 */
import { Limit, RateLimiter, type Lease } from "zae-limiter";
import { MemoryRepository } from "zae-limiter/memory";
import { instrument } from "zae-limiter/otel";
import { faultyRepository, ManualClock, seededRandom } from "zae-limiter/testing";
import { expect, it } from "vitest";
import { CollectedTelemetry, type Series } from "../../test/support/collected-telemetry.ts";
import { between, pick } from "../../test/support/seeded/random-choice.ts";
import { getEach, seedsFromEnvironment } from "../../test/support/seeded/seeds.ts";

const ENTITIES = ["org", "key-1", "key-2", "key-3"];
const RESOURCES = ["gpt-4", "search", "images"];
const STEPS = 120;

type Random = () => number;

const SEEDS = getEach(seedsFromEnvironment({ usual: 12 }));

it("taken − returned + charged is the usage of the repository", async () => {
  const reached = {
    granted: 0,
    refused: 0,
    degraded: 0,
    error: 0,
    aborted: 0,
    failures: 0,
    charged: 0,
  };
  let cascaded = 0;
  for (const seed of SEEDS) {
    const collected = new CollectedTelemetry();
    const telemetry = instrument({ meterProvider: collected.meterProvider });
    const repository = await history(seededRandom(seed));
    const series = await collected.series();
    for (const resource of RESOURCES) {
      const summary = await repository.getUsageSummary({ resource });
      cascaded += summary.cascaded["tpm"] ?? 0;
      for (const limit of ["rpm", "tpm", "counted"])
        expect(addUp(series, resource, limit), `seed ${seed}: ${resource} ${limit}`).toBe(
          summary.total[limit] ?? 0,
        );
    }
    const open = series.filter(({ name }) => name === "zae_limiter.leases.open");
    expect(open.map(({ sum }) => sum)).toEqual(open.map(() => 0));
    expect(open.length).toBeGreaterThan(0);
    for (const { name, attributes, sum, count } of series) {
      const outcome = attributes["zae_limiter.outcome"] as keyof typeof reached;
      if (name === "zae_limiter.acquire.duration") reached[outcome] += count!;
      if (attributes["error.type"] === "AbortError") reached.aborted += count!;
      if (name === "zae_limiter.settlement.failures") reached.failures += sum;
      if (name === "zae_limiter.tokens.charged") reached.charged += sum;
    }
    telemetry[Symbol.dispose]();
    await collected.stop();
  }
  for (const [what, times] of Object.entries({ ...reached, cascaded }))
    expect(times, `the histories reach ${what}`).toBeGreaterThan(0);
});

function addUp(series: readonly Series[], resource: string, limit: string): number {
  const signs = new Map([
    ["zae_limiter.tokens.taken", 1],
    ["zae_limiter.tokens.returned", -1],
    ["zae_limiter.tokens.charged", 1],
  ]);
  return series
    .filter(
      ({ attributes }) =>
        attributes["zae_limiter.resource"] === resource &&
        attributes["zae_limiter.limit"] === limit,
    )
    .reduce((total, { name, sum }) => total + (signs.get(name) ?? 0) * sum, 0);
}

/** Entities under a parent, limits at several levels, and a name that is only counted. */
async function newRepository(): Promise<{
  readonly repository: MemoryRepository;
  readonly clock: ManualClock;
}> {
  const clock = new ManualClock();
  const repository = new MemoryRepository({ clock });
  await repository.setSystemDefaults([Limit.perMinute("rpm", 30), Limit.perMinute("tpm", 3000)]);
  await repository.setResourceDefaults("images", [
    Limit.perMinute("rpm", 3),
    Limit.perMinute("tpm", 100),
    Limit.perMinute("counted", 5),
  ]);
  await repository.createEntity("org");
  await repository.createEntity("key-1", { parentId: "org", cascade: true });
  await repository.createEntity("key-2", { parentId: "org", cascade: true });
  await repository.setLimits("key-3", [Limit.perMinute("rpm", 30), Limit.perMinute("tpm", 500)], {
    resource: "images",
  });
  return { repository, clock };
}

async function history(random: Random): Promise<MemoryRepository> {
  const { repository, clock } = await newRepository();
  let away: ReadonlySet<string> = new Set();
  const limiter = new RateLimiter({
    repository: faultyRepository(repository, (operation) =>
      away.has(operation) ? "error-before" : undefined,
    ),
    onSettlementFailed: () => {},
  });
  const open: Lease[] = [];
  for (let step = 0; step < STEPS; step += 1) {
    away = new Set(random() < 0.1 ? ["consume", "settle", "giveBack", "charge"] : []);
    const act = pick(random, [acquireOne, acquireOne, doWork, change, change, end, readCharged]);
    await act(random, limiter, open).catch(() => {});
    await clock.advance(between(random, 0, 3000));
  }
  away = new Set();
  for (const lease of open) await lease.commit();
  return repository;
}

async function acquireOne(random: Random, limiter: RateLimiter, open: Lease[]): Promise<void> {
  const resource = pick(random, RESOURCES);
  const further = pick(random, RESOURCES);
  const abort = new AbortController();
  // At that time the take of a call that waits is in progress.
  queueMicrotask(() => abort.abort());
  const verdict = await limiter.tryAcquire({
    entityId: pick(random, ENTITIES),
    resource,
    consume: amounts(random, resource),
    ...(further !== resource && { also: { [further]: amounts(random, further) } }),
    ...(random() < 0.5 && { onUnavailable: "allow" as const }),
    ...(random() < 0.2 && { waitUpToMs: 1, signal: abort.signal }),
  });
  if (verdict.granted) open.push(verdict.lease);
}

async function doWork(random: Random, limiter: RateLimiter): Promise<void> {
  const resource = pick(random, RESOURCES);
  const call = { entityId: pick(random, ENTITIES), resource, consume: amounts(random, resource) };
  await limiter.acquire(call, async (lease) => {
    await change(random, limiter, [lease]);
    if (random() < 0.3) throw new Error("work");
    if (random() < 0.2) lease.settle({ tpm: 7, nonsense: 1 });
  });
}

/** Settles up or down, or takes more, of any resource of an open lease. */
async function change(random: Random, _: RateLimiter, open: readonly Lease[]): Promise<void> {
  if (open.length === 0) return;
  const lease = pick(random, open);
  const resource = pick(random, lease.resources);
  const part = lease.resourceLease(resource);
  const kind = random();
  if (kind < 0.4) part.settle(amounts(random, resource));
  else if (kind < 0.6) part.adjust(amounts(random, resource));
  else await part.consume(amounts(random, resource));
}

async function end(random: Random, _: RateLimiter, open: Lease[]): Promise<void> {
  const [lease] = open.splice(between(random, 0, open.length - 1), 1);
  if (random() < 0.6) await lease?.commit();
  else await lease?.rollback();
}

async function readCharged(random: Random, limiter: RateLimiter): Promise<void> {
  const resource = pick(random, RESOURCES);
  await limiter.charge({
    entityId: pick(random, ENTITIES),
    resource,
    amounts: amounts(random, resource),
    ...(resource !== "search" && { also: { search: { tpm: between(random, 0, 50) } } }),
  });
}

function amounts(random: Random, resource: string): Record<string, number> {
  return {
    rpm: between(random, 0, 2),
    tpm: between(random, 0, 400),
    ...(resource === "images" && { counted: between(random, 0, 2) }),
  };
}
