import { Limit, RateLimiter, type Repository } from "zae-limiter";
import { DynamoRepository, type DynamoTransport } from "zae-limiter/dynamodb";
import { NEVER_REACHED, operate } from "../cases.ts";
import { bareTable, buildCounter, takeOne } from "../contestants/floor.ts";
import { openLeanTransport } from "../transports.ts";
import { NAMESPACE, openBoundedRepository, type BoundedOptions } from "./bounded-repository.ts";
import { DistantTransport } from "./distant-transport.ts";

/** What a contestant is there for; one that is idle shows what the arrivals themselves cost. */
export type Role = "idle" | "floor" | "unshared" | "shared";

/** A contestant whose calls arrive on a schedule. */
export interface ArrivalContestant {
  readonly role: Role;
  readonly name: string;
  readonly transport: DistantTransport;
  readonly call: (entityId: string) => Promise<void>;
}

/** All contestants. */
export interface ArrivalField {
  readonly contestants: readonly ArrivalContestant[];
  close(): Promise<void>;
}

/** How many requests may be under way while writes wait; the library has chosen one of them. */
const BOUNDS = [1, 2, 4, 8, 16];

const FLOOR_TABLE = "bench-arrivals-floor";

/** Callers who wait for each other, before the arrivals begin. */
const CALLERS = 64;

/** Calls on each entity before the arrivals begin: the first creates its bucket. */
const WARM_UPS = 4;

/** Opens all contestants on the lean transport; everything that a first call costs is paid here. */
export async function openArrivalContestants(
  endpointUrl: string,
  entityIds: readonly string[],
): Promise<ArrivalField> {
  const lean = await openLeanTransport({ endpointUrl });
  const repositories: Repository[] = [];
  const close = async (): Promise<void> => {
    for (const repository of repositories) await repository.close();
    lean.close();
  };
  const ours = async (role: Role, name: string, open: Open): Promise<ArrivalContestant> => {
    const transport = new DistantTransport(lean);
    const repository = await open(transport);
    repositories.push(repository);
    return { role, name, transport, call: await prepareAcquire(repository) };
  };
  try {
    const contestants: ArrivalContestant[] = [
      { role: "idle", name: "idle", transport: new DistantTransport(lean), call: async () => {} },
      await prepareUpdate(new DistantTransport(lean), entityIds),
      await ours("unshared", "zae-limiter, sharing off", async (transport) =>
        DynamoRepository.open(NAMESPACE, {
          ...toOptions("unshared", transport),
          shareRequests: false,
        }),
      ),
      await ours("shared", "zae-limiter, as it is", async (transport) =>
        DynamoRepository.open(NAMESPACE, toOptions("shared", transport)),
      ),
    ];
    for (const bound of BOUNDS)
      contestants.push(
        await ours("shared", `zae-limiter, at most ${bound} under way`, async (transport) =>
          openBoundedRepository(toOptions(`bound-${bound}`, transport), bound),
        ),
      );
    for (let warmUp = 0; warmUp < WARM_UPS; warmUp += 1)
      for (const { call } of contestants) await forAll(entityIds, call);
    return { contestants, close };
  } catch (error) {
    await close();
    throw error;
  }
}

type Open = (transport: DynamoTransport) => Promise<Repository>;

function toOptions(name: string, transport: DynamoTransport): BoundedOptions {
  return {
    transport,
    stack: `bench-arrivals-${name}`,
    provisioning: "table",
    stream: false,
    // Longer than this benchmark: reading the configuration again is not part of a call's cost.
    configCacheTtlMs: 3_600_000,
  };
}

async function prepareAcquire(repository: Repository): Promise<ArrivalContestant["call"]> {
  await repository.setSystemDefaults([
    Limit.perMinute("rpm", NEVER_REACHED),
    Limit.perMinute("tpm", NEVER_REACHED),
  ]);
  const limiter = new RateLimiter({ repository });
  const consume = { rpm: 1, tpm: 1 };
  return async (entityId) => {
    const lease = await limiter.acquire({ entityId, resource: "gpt-4", consume });
    await lease.commit();
  };
}

/** The floor: one bare conditional UpdateItem a call. */
async function prepareUpdate(
  transport: DistantTransport,
  entityIds: readonly string[],
): Promise<ArrivalContestant> {
  const send = async (operation: string, input: object): Promise<void> => {
    await transport.call(operation, input, { signal: new AbortController().signal });
  };
  await send("CreateTable", bareTable(FLOOR_TABLE));
  await forAll(entityIds, async (key) =>
    send("PutItem", buildCounter(FLOOR_TABLE, { key, tokens: NEVER_REACHED })),
  );
  const call = async (key: string): Promise<void> => send("UpdateItem", takeOne(FLOOR_TABLE, key));
  return { role: "floor", name: "floor: conditional UpdateItem", transport, call };
}

async function forAll(
  entityIds: readonly string[],
  call: (entityId: string) => Promise<void>,
): Promise<void> {
  await operate({ entityIds, concurrency: CALLERS }, call)(entityIds.length);
}
