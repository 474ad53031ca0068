import { Limit, RateLimiter, type RepositoryStatistics } from "zae-limiter";
import { DynamoRepository, type DynamoClient, type DynamoTransport } from "zae-limiter/dynamodb";
import type { Bill, BillMeter } from "../bill.ts";
import { NEVER_REACHED, operate, type Case } from "../cases.ts";
import type { Contestant, ContestantId } from "./contestant.ts";

/** What ours is measured with. */
export interface OursOptions {
  readonly id: ContestantId;
  readonly name: string;
  /** @default "bench" */
  readonly namespace?: string;
  readonly stack: string;
  /** What every entity may take of `rpm` and `tpm`. @default rates that no call reaches */
  readonly limits?: readonly Limit[];
  readonly meter: BillMeter;
  /** Whether writes of different buckets may share a request. */
  readonly shareRequests: boolean;
  readonly connection: { readonly client: DynamoClient } | { readonly transport: DynamoTransport };
}

/** As long as the original remembers what refuses, so that both ask the table equally often. */
const REFUSAL_MEMORY_MS = 1000;

/** Where sharing requests could make a difference: all writes of the others are of one bucket. */
const SHARING_MATTERS: ReadonlySet<Case["id"]> = new Set([
  "sequential",
  "many",
  "children",
  "cascade",
  "alone",
]);

const RESOURCE = "gpt-4";
const UNREACHABLE = [Limit.perMinute("rpm", NEVER_REACHED), Limit.perMinute("tpm", NEVER_REACHED)];
const EXHAUSTED = [Limit.perDay("rpm", 1), Limit.perMinute("tpm", NEVER_REACHED)];

/** Ours on one transport: an operation acquires and commits two limits. */
export async function ours(options: OursOptions): Promise<Contestant> {
  const { repository, prepare, bill } = await openOurs(options);
  return {
    id: options.id,
    name: options.name,
    enter: async (race) => {
      if (!options.shareRequests && !SHARING_MATTERS.has(race.id)) return undefined;
      const run = operate(race, await prepare(race));
      return { run, bill: async (operations) => bill(async () => run(operations)) };
    },
    close: async () => repository.close(),
  };
}

/** Ours, for a benchmark that decides by itself how often and when it is called. */
export interface Ours {
  readonly repository: DynamoRepository;
  /** Pays for all that the first call of each entity costs, and returns what makes one call. */
  readonly prepare: (race: Case) => Promise<(entityId: string) => Promise<void>>;
  readonly bill: (work: () => Promise<void>) => Promise<Bill & Required<Pick<Bill, "statistics">>>;
}

/** Opens ours, in a namespace of the table. */
export async function openOurs({
  namespace = "bench",
  stack,
  limits = UNREACHABLE,
  meter,
  shareRequests,
  connection,
}: Omit<OursOptions, "id" | "name">): Promise<Ours> {
  const repository = await DynamoRepository.open(namespace, {
    ...connection,
    stack,
    provisioning: "table",
    stream: false,
    refusalMemoryMs: REFUSAL_MEMORY_MS,
    shareRequests,
  });
  await repository.setSystemDefaults(limits);
  const limiter = new RateLimiter({ repository });
  const call = async (entityId: string): Promise<void> => {
    const lease = await limiter.acquire({
      entityId,
      resource: RESOURCE,
      consume: { rpm: 1, tpm: 1 },
    });
    await lease.commit();
  };
  const beRefused = async (entityId: string): Promise<void> => {
    const verdict = await limiter.tryAcquire({
      entityId,
      resource: RESOURCE,
      consume: { rpm: 1, tpm: 1 },
    });
    if (verdict.granted) throw new Error("Ours granted what should be refused");
  };
  const store = async ({ entityIds, parentId, exhausted }: Case): Promise<void> => {
    if (parentId !== undefined) {
      await repository.ensureEntity(parentId);
      for (const entityId of entityIds)
        await repository.ensureEntity(entityId, { parentId, cascade: true });
    }
    if (exhausted)
      for (const entityId of entityIds)
        await repository.setLimits(entityId, EXHAUSTED, { resource: RESOURCE });
  };
  return {
    repository,
    prepare: async (race) => {
      await store(race);
      await operate(race, call)(race.entityIds.length);
      return race.exhausted ? beRefused : call;
    },
    bill: async (work) => {
      const before = repository.getStatistics();
      const bill = await meter.measure(work);
      return { ...bill, statistics: difference(repository.getStatistics(), before) };
    },
  };
}

function difference(
  after: RepositoryStatistics,
  before: RepositoryStatistics,
): RepositoryStatistics {
  const counts = Object.entries(after).map(([name, count]) => [
    name,
    count - before[name as keyof RepositoryStatistics],
  ]);
  return Object.fromEntries(counts) as RepositoryStatistics;
}
