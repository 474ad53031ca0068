import type { Random } from "zae-limiter";
import type { DynamoRepository } from "zae-limiter/dynamodb";
import { between, pick } from "../../support/seeded/random-choice.ts";
import type { CoverageCounts } from "../../support/seeded/coverage-counts.ts";
import type { StreamProxy } from "../../support/stream-proxy.ts";
import { Client, type ClientWorld, type Situation } from "./client.ts";
import {
  newEntities,
  PARENT,
  RESOURCES,
  storeEntities,
  storeEntity,
  storeLimits,
} from "./entities.ts";
import { type HeldLease, Lives } from "./held-lease.ts";
import { Ledger } from "./ledger.ts";
import type { PhaseTimes } from "./phase-times.ts";
import type { StoredBucket, UsageTable } from "./usage-table.ts";

/** How a history goes. */
export interface HistoryOptions {
  readonly random: Random;
  readonly clients: number;
  /** In each phase, clients act in so many rounds. */
  readonly rounds: number;
  /** Whether all clients act at once in each round, or one after another. */
  readonly isConcurrent: boolean;
  /** Lets some time pass. */
  readonly pause: () => void;
  readonly times: PhaseTimes;
  readonly table: UsageTable;
  readonly proxy: StreamProxy;
  readonly coverage: CoverageCounts<Situation>;
  readonly open: () => Promise<DynamoRepository>;
}

/**
 * Lets clients take, settle and give back, at the same time and in several phases, each of which
 * is an hour of its own in the stream. Between two phases, when nothing is under way,
 * configuration changes and buckets are deleted. The ledger holds what the clients were answered.
 */
export async function playHistory(options: HistoryOptions): Promise<Ledger> {
  const { random, times, table, coverage, proxy } = options;
  const entities = newEntities();
  const parent = entities.find(({ id }) => id === PARENT)!;
  const ledger = new Ledger();
  const leases: HeldLease[] = [];
  const lives = new Lives();
  const world: ClientWorld = {
    random,
    entities,
    coverage,
    leases,
    split: new Set(),
    ledger,
    lives,
    parent,
    atMs: () => times.nowMs,
  };
  let clients = await openClients(options);
  await storeEntities(clients[0]!.repository, entities);

  const repository = (): DynamoRepository => clients[0]!.repository;
  const endAll = async (): Promise<void> => {
    while (leases.length > 0) await pick(random, clients).end(world, leases.pop()!)();
  };
  const deleted = async (
    { entityId, resource, keys }: StoredBucket,
    some: number,
  ): Promise<void> => {
    for (const key of keys.slice(0, some)) await table.delete(key);
    lives.end(entityId, resource);
  };
  const changes: readonly (() => Promise<void>)[] = [
    async () => {
      const turncoat = entities.find(({ id }) => id === "turncoat")!;
      turncoat.cascades = !turncoat.cascades;
      await repository().updateEntity(turncoat.id, { cascade: turncoat.cascades });
      coverage.count("began or ceased to cascade");
    },
    async () => {
      const entity = pick(random, [parent, entities.find(({ id }) => id === "loner")!]);
      const capacity = between(random, 2000, 5000);
      entity.limits = pick(random, [
        [["tpm", capacity]],
        [["rpm", capacity]],
        [
          ["rpm", capacity],
          ["tpm", capacity],
        ],
      ]);
      await storeLimits(repository(), entity);
      coverage.count("limits changed");
    },
    async () => {
      // Buckets that are split do not expire.
      const whole = (await table.buckets()).filter(({ keys }) => keys.length === 1);
      if (whole.length === 0) return;
      const bucket = pick(random, whole);
      table.expired.add(bucket.keys[0]!.PK);
      await deleted(bucket, 1);
      coverage.count("bucket deleted by time to live");
    },
    async () => {
      const entity = pick(
        random,
        entities.filter(({ isDeletable }) => isDeletable),
      );
      await repository().deleteEntity(entity.id);
      for (const resource of RESOURCES) lives.end(entity.id, resource);
      await storeEntity(repository(), entity);
      coverage.count("entity deleted and created again");
    },
    async () => {
      // A process died after it had deleted shard 0. Others that still knew the other shards would
      // write to them; here none does, so that it is certain which bucket a lease took from.
      const split = (await table.buckets()).filter(({ keys }) => keys.length > 1);
      if (split.length === 0) return;
      await endAll();
      await closeAll(clients);
      await deleted(pick(random, split), 1);
      clients = await openClients(options);
      coverage.count("deletion that got stuck half-way");
    },
    async () => {
      const shards = await proxy.shards(table.tableName);
      const isOpen = shards.filter(({ to }) => to === undefined);
      await proxy.split(table.tableName, pick(random, isOpen).id);
      coverage.count("stream shard split");
    },
  ];

  try {
    for (let phase = 0; phase < times.count; phase += 1) {
      for (let round = 0; round < options.rounds; round += 1) await act(clients, world, options);
      if (phase === times.count - 1) await endAll();
      times.endPhase(await proxy.lastSequenceNumber(table.tableName));
      for (const change of changes) if (random() < 0.5) await change();
    }
    return ledger;
  } finally {
    await closeAll(clients);
  }
}

async function openClients({ clients, open }: HistoryOptions): Promise<readonly Client[]> {
  return Promise.all(Array.from({ length: clients }, async () => new Client(await open())));
}

async function closeAll(clients: readonly Client[]): Promise<void> {
  for (const { repository } of clients) await repository.close();
}

async function act(
  clients: readonly Client[],
  world: ClientWorld,
  { isConcurrent, pause }: HistoryOptions,
): Promise<void> {
  pause();
  if (isConcurrent) return allDone(clients.map((client) => client.next(world)()));
  for (const client of clients) await client.next(world)();
}

/** Waits for all, then throws the first error. */
async function allDone(actions: readonly Promise<void>[]): Promise<void> {
  const failed = (await Promise.allSettled(actions)).find(({ status }) => status === "rejected");
  if (failed?.status === "rejected") throw failed.reason;
}
