import { RateLimiterUnavailable, ValidationError } from "zae-limiter";
import type { ConsumeOutcome } from "../../../src/repository/port.ts";
import { RESOURCE, type Client, type Lease, type Operation } from "./client.ts";
import { GRANTS, reversed, together, type Effect } from "./ledger.ts";
import type { World } from "./world.ts";
import { requestFor } from "../../support/bucket-process.ts";
import { between, pick } from "../../support/seeded/random-choice.ts";

/** How often an end of a lease is tried, over all. */
const MOST_ATTEMPTS = 3;

/** After so many troubles a write is given up. */
const FAILED_ATTEMPTS = 3;

/** Starts some call of a client: a new one, or one on a lease that it holds. */
export function startSomething(world: World, client: Client): void {
  const { random } = world;
  const lease = pick(
    random,
    client.leases.filter(({ isBusy }) => !isBusy),
  );
  if (lease !== undefined && (lease.ending !== undefined || random() < world.scenario.leaseCalls))
    return endOrExtend(world, client, lease);
  const { entityIds, parentId, callsParent, charges } = world.scenario;
  const entityId = pick(random, callsParent ? [...entityIds, parentId!] : entityIds);
  const amounts = someAmounts(world, entityId);
  if (charges > 0 && random() < charges) startCharge(world, client, entityId, amounts);
  else startTake(world, client, { entityId, amounts });
}

/** Charges what already happened: once, if it says so, and at most once if it does not. */
function startCharge(
  world: World,
  client: Client,
  entityId: string,
  amounts: Record<string, number>,
): void {
  const effect: Effect = new Map(Object.entries(amounts));
  const operation: Operation = {
    kind: "charge",
    entityId,
    effect,
    lease: undefined,
    ...newOperation(),
    attempts: 1,
  };
  const request = requestFor(entityId, amounts, { resource: RESOURCE });
  run(world, client, operation, async () => client.process.buckets.charge(request), {
    answered: () => {
      world.coverage.count("charge");
      world.ledger.exactly(world.charged(entityId), effect);
    },
    failed: () => world.perhaps(operation),
  });
}

/** Splits some bucket. */
export function startSomeSplit(world: World, client: Client): void {
  const { random, scenario } = world;
  const entityId = pick(random, [...scenario.limits.keys()]);
  const counts = [2, 2, 4, 8].filter((count) => count <= scenario.maxShards);
  startReshape(world, client, { kind: "split", entityId, shards: pick(random, counts) ?? 2 });
}

/** Merges some bucket that has several shards. */
export function startSomeMerge(world: World, client: Client): void {
  const entityId = pick(world.random, world.table.splitEntityIds);
  startReshape(world, client, { kind: "merge", entityId, shards: pick(world.random, [1, 1, 2]) });
}

/** A bucket is split into at least, or merged into at most so many shards. */
export interface Reshape {
  readonly kind: "split" | "merge";
  readonly entityId: string;
  readonly shards: number;
}

/** Splits or merges a bucket. */
export function startReshape(
  world: World,
  client: Client,
  { kind, entityId, shards }: Reshape,
): void {
  const { buckets } = client.process;
  world.coverage.count(`${kind} asked`);
  const operation: Operation = {
    kind,
    entityId,
    effect: new Map(),
    lease: undefined,
    ...newOperation(),
    attempts: 1,
  };
  // A bucket that does not exist yet cannot be split, nor can one whose shares would be too small.
  const reshape = (): Promise<unknown> =>
    buckets[kind](entityId, RESOURCE, shards).catch((error: unknown) => {
      if (!(error instanceof ValidationError)) throw error;
    });
  run(world, client, operation, reshape, { answered: () => {}, failed: () => {} });
}

/** Takes, for a new lease or for one that is held. */
export function startTake(
  world: World,
  client: Client,
  {
    entityId,
    amounts,
    lease,
  }: {
    readonly entityId: string;
    readonly amounts: Record<string, number>;
    readonly lease?: Lease;
  },
): void {
  const effect: Effect = new Map([
    ...Object.entries(amounts),
    [GRANTS, lease === undefined ? 1 : 0],
  ]);
  const operation: Operation = {
    kind: "take",
    entityId,
    effect,
    lease,
    ...newOperation(),
    attempts: 1,
  };
  const request = requestFor(entityId, amounts, { resource: RESOURCE });
  const reshapesBefore = world.reshapes;
  const answered = (outcome: ConsumeOutcome): void => {
    world.coverage.count(
      outcome.granted ? (lease === undefined ? "grant" : "further take") : "refusal",
    );
    if (!outcome.granted) {
      if (operation.unknowns > 0) client.owe(operation);
      return world.refused(client, operation);
    }
    if (world.charged(entityId).length > 1) world.coverage.count("grant by cascade");
    if (entityId === world.scenario.parentId) world.coverage.count("grant of a parent's own call");
    world.ledger.exactly(world.charged(entityId), effect);
    // What one bucket gave before another refused goes back, unless every attempt fails; then the
    // call is decided again.
    if (world.charged(entityId).length > 1 && operation.faults >= FAILED_ATTEMPTS)
      world.ledger.perhaps(world.charged(entityId), effect);
    if (lease === undefined)
      client.leases.push({
        receipt: outcome.receipt,
        entityId,
        taken: effect,
        isBusy: false,
        ending: undefined,
        reshapesBefore,
      });
    else lease.taken = together(lease.taken, effect);
  };
  const failed = (): void => {
    world.perhaps(operation);
    if (operation.unknowns > 0) client.owe(operation);
  };
  run(
    world,
    client,
    operation,
    async () => client.process.buckets.consume(request, lease?.receipt),
    { answered, failed },
  );
}

/** Settles a lease, or gives it back. What was begun is only finished. */
export function startEnd(
  world: World,
  client: Client,
  lease: Lease,
  kind: "settle" | "give back",
  effect: Effect,
): void {
  const operation = lease.ending ?? {
    kind,
    effect,
    entityId: lease.entityId,
    lease,
    ...newOperation(),
    attempts: 0,
  };
  lease.ending = operation;
  operation.attempts += 1;
  if (operation.attempts > 1) world.coverage.count("end that was tried again");
  const { buckets } = client.process;
  const amounts = Object.fromEntries(operation.effect);
  const call = (): Promise<void> =>
    operation.kind === "settle"
      ? buckets.settle(lease.receipt, [{ resource: RESOURCE, amounts }])
      : buckets.giveBack(lease.receipt);
  const close = (): void => void client.leases.splice(client.leases.indexOf(lease), 1);
  const answered = (): void => {
    world.coverage.count(operation.kind === "settle" ? "settlement" : "give-back");
    world.countReshapes(lease.reshapesBefore, "take and end");
    close();
    world.ended(operation);
  };
  const failed = (): void => {
    if (operation.attempts < MOST_ATTEMPTS) return;
    close();
    world.perhaps(operation);
  };
  run(world, client, operation, call, { answered, failed });
}

function endOrExtend(world: World, client: Client, lease: Lease): void {
  const { random, scenario } = world;
  const { entityId, taken } = lease;
  if (lease.ending === undefined && random() < 0.2)
    return startTake(world, client, { entityId, amounts: someAmounts(world, entityId), lease });
  if (lease.ending === undefined && random() < 0.5)
    return startEnd(world, client, lease, "give back", reversed(taken));
  const names = scenario.limits.get(entityId)!.map(({ name }) => name);
  startEnd(
    world,
    client,
    lease,
    "settle",
    new Map(names.map((name) => [name, between(random, -(taken.get(name) ?? 0), 6)])),
  );
}

function newOperation(): Pick<Operation, "startedAtMs" | "statesBefore" | "faults" | "unknowns"> {
  return { startedAtMs: 0, statesBefore: [], faults: 0, unknowns: 0 };
}

function someAmounts(
  { random, scenario, limits, coverage }: World,
  entityId: string,
): Record<string, number> {
  const smallest = limits.get(entityId)!.map(({ name, capacity }) => {
    const parent =
      scenario.parentId === undefined
        ? undefined
        : limits.get(scenario.parentId)!.find((limit) => limit.name === name);
    return { name, capacity: Math.min(capacity, parent?.capacity ?? capacity) };
  });
  if (random() < scenario.largeCalls) {
    coverage.count("call as large as the capacity");
    return Object.fromEntries(
      smallest.map(({ name, capacity }) => [name, Math.max(1, capacity - between(random, 0, 2))]),
    );
  }
  return Object.fromEntries(
    smallest.map(({ name, capacity }) => [name, between(random, 0, Math.ceil(capacity / 6))]),
  );
}

/** Starts a call and notes its answer, unless its process has died meanwhile. */
function run<T>(
  world: World,
  client: Client,
  operation: Operation,
  call: () => Promise<T>,
  { answered, failed }: { readonly answered: (answer: T) => void; readonly failed: () => void },
): void {
  const { lease } = operation;
  operation.startedAtMs = world.time.nowMs;
  operation.statesBefore = world
    .charged(operation.entityId)
    .map((entityId) => world.table.history(entityId).states.length);
  client.underWay.add(operation);
  if (lease !== undefined) lease.isBusy = true;
  world.tell(
    `process ${client.number} starts to ${operation.kind} ${operation.entityId} ${JSON.stringify([...operation.effect])}`,
  );
  const end = (outcome: string, then: () => void): void => {
    if (!client.isAlive) return;
    client.underWay.delete(operation);
    if (lease !== undefined) lease.isBusy = false;
    world.tell(
      `process ${client.number}: ${operation.kind} ${operation.entityId} ${JSON.stringify([...operation.effect])}: ${outcome}`,
    );
    world.guarded(then);
  };
  call().then(
    (answer) =>
      end(
        JSON.stringify(answer, (key, value: unknown) =>
          key === "receipt" || key === "policies" ? undefined : value,
        ) ?? "done",
        () => answered(answer),
      ),
    (error: unknown) =>
      end(String(error), () => {
        if (!(error instanceof RateLimiterUnavailable)) throw error;
        world.coverage.count("unavailable");
        failed();
      }),
  );
}
