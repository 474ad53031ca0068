/*
 * Many calls at the same time, with random ends: afterwards the balances, the usage, the leases and
 * what was told are exactly what the oracle says. `SEED=7 SEEDS=1` replays one run.
 */
import { Limit, RateLimiter, type Repository } from "zae-limiter";
import { CHANNELS, type AcquireMessage, type StreamMessage } from "zae-limiter/diagnostics";
import { MemoryRepository } from "zae-limiter/memory";
import { SqliteRepository } from "zae-limiter/sqlite";
import { ManualClock, seededRandom } from "zae-limiter/testing";
import { expect, it } from "vitest";
import { HeardMessages } from "../../support/heard-messages.ts";
import { CoverageCounts } from "../../support/seeded/coverage-counts.ts";
import { getEach, seedsFromEnvironment } from "../../support/seeded/seeds.ts";
import { closeLater, temporaryFile } from "../../support/temporary-file.ts";
import { computeExpected, reservedFor } from "./oracle.ts";
import { runScripts, type Seen } from "./run.ts";
import { MODELS, PLAIN_ENDS, randomScripts, STREAM_ENDS } from "./scripts.ts";

const CALLS = 80;
const SEEDS = getEach(seedsFromEnvironment({ usual: 10 }));

const NAMES = ["rpm", "tpm", "itpm", "otpm", "credits"];

/** A limit that does not refill while a test runs. */
function fix(name: string, capacity: number): Limit {
  return { name, capacity, refillAmount: 1, refillPeriodSeconds: 1_000_000_000 };
}

const PLENTY = 100_000_000;
const POOR = 2_000;
const STOPPING = 1_000;

type Totals = Map<string, number>;
type Amounts = Readonly<Record<string, number>>;

const coverage = new CoverageCounts([
  ...PLAIN_ENDS,
  ...STREAM_ENDS,
  "refused",
  "stopped",
  "went into debt",
  "kept",
]);

const backends: readonly (readonly [string, (clock: ManualClock) => Promise<Repository>])[] = [
  ["memory", async (clock) => new MemoryRepository({ clock })],
  ["SQLite", async (clock) => closeLater(await SqliteRepository.open(temporaryFile(), { clock }))],
];

it.each(backends)(
  `%s: ${CALLS} calls at once cost what they should, over ${SEEDS.length} seeds`,
  { timeout: 600_000 },
  async (_, open) => {
    for (const seed of SEEDS) await simulate(seed, open);
    if (process.env["SEEDS"] === undefined) expect(coverage.missing).toEqual([]);
  },
);

async function simulate(
  seed: number,
  open: (clock: ManualClock) => Promise<Repository>,
): Promise<void> {
  const scripts = randomScripts(seededRandom(seed), CALLS);
  const clock = new ManualClock();
  const repository = await open(clock);
  const limiter = new RateLimiter({ repository });
  const entities = [...new Set(scripts.map(({ entityId }) => entityId))];
  await repository.setSystemDefaults(NAMES.map((name) => fix(name, PLENTY)));
  await repository.createEntity("org");
  for (const entityId of entities) {
    await repository.createEntity(entityId, { parentId: "org", cascade: true });
    const capacity = getCapacity(entityId);
    if (capacity !== PLENTY)
      await repository.setLimits(
        entityId,
        NAMES.map((name) => fix(name, capacity)),
      );
  }

  const heard = new HeardMessages();
  const [ends, acquires] = [heard.ends(), heard.acquires()];
  const streams: string[] = [];
  heard.each(CHANNELS.stream, (message) => streams.push((message as StreamMessage).state));
  const seen = await runScripts(limiter, clock, scripts).finally(() => heard.stop());

  const expected: Totals = new Map();
  for (const [index, call] of seen.entries()) {
    const story = `seed ${seed}, call ${index}: ${JSON.stringify(call.script)}`;
    const taken = takenBy(acquires, call.script.entityId);
    for (const [name, total] of Object.entries(checkedTotals(call, taken, story)))
      for (const entityId of [call.script.entityId, "org"])
        add(expected, [entityId, call.script.model, name].join(" "), total);
  }

  const actual: Totals = new Map();
  const usage: Totals = new Map();
  for (const entityId of [...entities, "org"])
    for (const resource of MODELS) {
      for (const bucket of await repository.getBuckets(entityId, { resource })) {
        const key = [entityId, resource, bucket.limitName].join(" ");
        add(actual, key, bucket.totalConsumedMilli / 1000);
        expect(getCapacity(entityId) - bucket.available, `seed ${seed}: balance of ${key}`).toBe(
          expected.get(key) ?? 0,
        );
        if (bucket.available < 0) coverage.count("went into debt");
      }
      const { total } = await repository.getUsageSummary({ entityId, resource });
      for (const [name, amount] of Object.entries(total))
        add(usage, [entityId, resource, name].join(" "), amount);
    }
  expect(withoutZeros(actual), `seed ${seed}: consumed`).toEqual(withoutZeros(expected));
  expect(withoutZeros(usage), `seed ${seed}: usage`).toEqual(withoutZeros(expected));

  const granted = seen.filter(({ isGranted }) => isGranted).length;
  expect(ends, `seed ${seed}: leases`).toHaveLength(granted);
  const opened = streams.filter((state) => state === "open").length;
  expect(streams.length, `seed ${seed}: streams`).toBe(2 * opened);
}

/** What a call should have cost. Also checks what was told of it. */
function checkedTotals(
  { script, isGranted, sawRefusal, records }: Seen,
  taken: Amounts,
  story: string,
): Amounts {
  // Whoever does not read on after the last part is not told that it was refused.
  const isStopped = sawRefusal || (script.end === "idle" && records[0]?.end === "stopped");
  coverage.count(isGranted ? (isStopped ? "stopped" : script.end) : "refused");
  expect(records, story).toHaveLength(isGranted ? 1 : 0);
  const [record] = records;
  if (record === undefined) return {};
  if (isStopped) {
    expect([script.overrun, record.end, record.source], story).toEqual([
      "stop",
      "stopped",
      "counted",
    ]);
    // What was stopped is within its limits.
    for (const amount of Object.values(taken)) expect(amount, story).toBeLessThanOrEqual(STOPPING);
    return taken;
  }
  const { totals, ends, source } = computeExpected(script);
  const reserved = reservedFor(script);
  if (record.source === "counted" && record.end !== "complete" && script.abandoned === "kept")
    if (Object.keys(totals).some((name) => totals[name] === reserved[name])) coverage.count("kept");
  expect(ends, story).toContain(record.end);
  expect(record.source, story).toBe(source);
  return totals;
}

/** Everything that was taken from one entity, as the limiter has told it. */
function takenBy(acquires: readonly AcquireMessage[], entityId: string): Amounts {
  const totals: Totals = new Map();
  for (const message of acquires)
    if (message.entityId === entityId && message.outcome === "granted")
      for (const [name, amount] of Object.entries(message.consume)) add(totals, name, amount);
  return Object.fromEntries(totals);
}

function getCapacity(entityId: string): number {
  if (entityId.startsWith("stopping")) return STOPPING;
  return entityId.startsWith("poor") ? POOR : PLENTY;
}

function add(totals: Totals, key: string, amount: number): void {
  totals.set(key, (totals.get(key) ?? 0) + amount);
}

function withoutZeros(totals: Totals): Record<string, number> {
  return Object.fromEntries([...totals].filter(([, amount]) => amount !== 0));
}
