/*
 * Processes on one exhausted bucket while requests fail: what their calls cost, how they end, and
 * what stays charged. The test of this folder asserts counts of short runs; `npm run bench:faults`
 * prints longer ones. Each run wants a fresh engine, because dynoxide becomes slower with what it
 * holds. Victims are chosen by a seed, but processes and engine are real: no run repeats another.
 */
import { DynamoRepository, leanTransport } from "zae-limiter/dynamodb";
import type { Fault } from "../../support/fault-proxy.ts";
import { CHILDREN, ENTITY, LIMIT } from "./hot-bucket.ts";
import { LoadProcess } from "./load-process.ts";
import { addUp, type FaultPlan, type ProxyCounts } from "./proxy-faults.ts";
import type { Assignment, CallCounts, WorkerReport } from "./worker.ts";

export type { FaultPlan };

/** What happened while all processes worked once. */
export interface Phase extends ProxyCounts, CallCounts {
  readonly latenciesMs: readonly number[];
}

/** Tokens that the bucket counts as consumed, and those that callers got and kept. */
export interface Ledger {
  readonly stored: number;
  /** The same of the buckets of its children. */
  readonly storedOfChildren: number;
  readonly kept: number;
}

/** What every run needs. */
export interface RunOptions {
  readonly engineUrl: string;
  readonly seed: number;
  readonly plan: FaultPlan;
  /** @default 3 */
  readonly processes?: number;
  /** @default long enough that only lost answers time out */
  readonly requestTimeoutMs?: number;
  /** Whether processes call for children of the bucket's entity. @default false */
  readonly forChildren?: boolean;
}

/** A slow moment of the machine must not look like a fault. */
const REQUEST_TIMEOUT_MS = 20_000;
const PROCESSES = 3;
/** Callers of each process. */
export const CALLERS = 16;
/** Long enough to use up the burst, and to find out what the others do. */
const WARM_UP_SECONDS = 1.5;
/** Long enough for processes to learn what became of their last writes. */
const REST_SECONDS = 0.5;
const LIVE_AT_ONCE = 4;

/** What throttled writes are answered: by exceptions that name no reason, and by one that does. */
export const THROTTLES: readonly Fault[] = ["throttle", "throughput", "hot-key"];

/** The same load before, during and after faults. */
export async function disturbed({
  seconds,
  plan,
  ...options
}: RunOptions & { readonly seconds: number }): Promise<{
  readonly before: Phase;
  readonly during: Phase;
  readonly after: Phase;
  readonly ledger: Ledger;
}> {
  await using crowd = await Crowd.gather(options);
  const load = { seconds, rollbackShare: 0 };
  await crowd.work({ ...load, seconds: WARM_UP_SECONDS });
  const before = await crowd.work(load);
  const during = await crowd.work(load, plan);
  const after = await crowd.work(load);
  return { before, during, after, ledger: await crowd.ledger() };
}

/** A load of which a share rolls back, with faults all the while, and a rest without them. */
export async function faulty({
  seconds,
  plan,
  ...options
}: RunOptions & { readonly seconds: number }): Promise<{
  readonly phase: Phase;
  readonly ledger: Ledger;
}> {
  await using crowd = await Crowd.gather(options);
  const load = { seconds, rollbackShare: 0.25 };
  await crowd.work({ ...load, seconds: WARM_UP_SECONDS });
  const phase = await crowd.work(load, plan);
  await crowd.work({ ...load, seconds: REST_SECONDS });
  return { phase, ledger: await crowd.ledger() };
}

/** Processes that come, make a few calls one after another, and go. */
export async function shortLived({
  processes,
  calls,
  plan,
  ...options
}: RunOptions & { readonly processes: number; readonly calls: number }): Promise<{
  readonly phase: Phase;
  readonly ledger: Ledger;
}> {
  await using crowd = await Crowd.gather({ ...options, processes: 0 });
  const phases: Phase[] = [];
  let next = 0;
  const live = async (): Promise<void> => {
    while (next < processes) {
      next += 1;
      phases.push(await crowd.visit(calls, plan));
    }
  };
  await Promise.all(Array.from({ length: LIVE_AT_ONCE }, live));
  return { phase: together(phases), ledger: await crowd.ledger() };
}

/** Processes that share one table. */
class Crowd implements AsyncDisposable {
  readonly #engineUrl: string;
  readonly #repository: DynamoRepository;
  readonly #stack: string;
  readonly #requestTimeoutMs: number;
  readonly #forChildren: boolean;
  #seed: number;
  #processes: readonly LoadProcess[] = [];
  #kept = 0;

  static async gather({
    engineUrl,
    seed,
    processes = PROCESSES,
    requestTimeoutMs = REQUEST_TIMEOUT_MS,
    forChildren = false,
  }: Omit<RunOptions, "plan">): Promise<Crowd> {
    const stack = `faults-${process.pid}-${Date.now().toString(36)}`;
    const repository = await DynamoRepository.open("faults", {
      transport: await leanTransport({ endpointUrl: engineUrl, region: "us-east-1" }),
      stack,
      provisioning: "table",
      stream: false,
    });
    const crowd = new Crowd({ engineUrl, stack, seed, repository, requestTimeoutMs, forChildren });
    await repository.setSystemDefaults([LIMIT]);
    await repository.createEntity(ENTITY);
    for (const id of CHILDREN)
      await repository.createEntity(id, { parentId: ENTITY, cascade: true });
    crowd.#processes = await Promise.all(
      Array.from({ length: processes }, async () => crowd.#start()),
    );
    return crowd;
  }

  private constructor(options: {
    readonly engineUrl: string;
    readonly stack: string;
    readonly seed: number;
    readonly repository: DynamoRepository;
    readonly requestTimeoutMs: number;
    readonly forChildren: boolean;
  }) {
    this.#requestTimeoutMs = options.requestTimeoutMs;
    this.#forChildren = options.forChildren;
    this.#engineUrl = options.engineUrl;
    this.#stack = options.stack;
    this.#seed = options.seed;
    this.#repository = options.repository;
  }

  /** All processes work for a while; without a plan nothing is hit. */
  async work(
    { seconds, rollbackShare }: { readonly seconds: number; readonly rollbackShare: number },
    plan?: FaultPlan,
  ): Promise<Phase> {
    const phases = this.#processes.map(async (process) =>
      this.#run(process, plan, { callers: CALLERS, until: { seconds }, rollbackShare }),
    );
    return together(await Promise.all(phases));
  }

  /** One process comes, makes its calls, and goes. */
  async visit(calls: number, plan: FaultPlan): Promise<Phase> {
    const process = await this.#start();
    try {
      return await this.#run(process, plan, { callers: 1, until: { calls }, rollbackShare: 0 });
    } finally {
      await process.stop();
    }
  }

  /** Compares what is stored with what callers have, once all processes have stopped. */
  async ledger(): Promise<Ledger> {
    await this.#dismiss();
    const stored = async (entityIds: readonly string[]): Promise<number> => {
      const buckets = await Promise.all(entityIds.map((id) => this.#repository.getBuckets(id)));
      return buckets.flat().reduce((sum, shard) => sum + shard.totalConsumedMilli, 0) / 1000;
    };
    return {
      stored: await stored([ENTITY]),
      storedOfChildren: await stored(CHILDREN),
      kept: this.#kept,
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#dismiss();
    await this.#repository.close();
  }

  async #start(): Promise<LoadProcess> {
    this.#seed += 1;
    return LoadProcess.start({
      engineUrl: this.#engineUrl,
      stack: this.#stack,
      seed: this.#seed,
      requestTimeoutMs: this.#requestTimeoutMs,
    });
  }

  async #run(
    process: LoadProcess,
    plan: FaultPlan | undefined,
    assignment: Omit<Assignment, "seed" | "forChildren">,
  ): Promise<Phase> {
    process.faults.takeCounts();
    process.faults.plan = plan;
    this.#seed += 1;
    const report: WorkerReport = await process.run({
      ...assignment,
      seed: this.#seed,
      forChildren: this.#forChildren,
    });
    process.faults.plan = undefined;
    this.#kept += report.kept;
    return { ...process.faults.takeCounts(), ...report };
  }

  async #dismiss(): Promise<void> {
    const processes = this.#processes;
    this.#processes = [];
    await Promise.all(processes.map(async (process) => process.stop()));
  }
}

function together(phases: readonly Phase[]): Phase {
  return { ...addUp(phases), latenciesMs: phases.flatMap(({ latenciesMs }) => latenciesMs) };
}
