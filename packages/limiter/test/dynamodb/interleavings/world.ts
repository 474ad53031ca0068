import { seededRandom } from "zae-limiter/testing";
import type { Random } from "../../../src/repository/system-clock.ts";
import type { DynamoTransport } from "../../../src/repository/dynamodb/transport/transport.ts";
import { Client, type Operation } from "./client.ts";
import type { HeldCall, Reshapes } from "./gate.ts";
import { cascaded, GRANTS, Ledger, type Effect } from "./ledger.ts";
import { someLimits, type Scenario, type ScenarioLimit } from "./scenario.ts";
import { SimulatedTime } from "../../support/simulated-time.ts";
import type { Coverage } from "./coverage.ts";
import {
  listCascadedGrants,
  getCascaded,
  getConsumed,
  listGrants,
} from "../../oracle/stored-bucket.ts";
import { WatchedTable } from "./watched-table.ts";

const START_MS = 1_800_000_000_000;

/** Everything that one seed simulates, and the answers that its processes got. */
export class World {
  readonly scenario: Scenario;
  readonly coverage: Coverage;
  readonly random: Random;
  readonly time = new SimulatedTime(START_MS);
  readonly table: WatchedTable;
  readonly ledger = new Ledger();
  /** What is configured now. */
  readonly limits: Map<string, readonly ScenarioLimit[]>;
  readonly clients: Client[] = [];
  /** Requests that no client waits for any more, and that may arrive all the same. */
  late: HeldCall[] = [];
  /** How often the network fails now. */
  faultRate = 0;
  lateMerges = 0;
  readonly trace: string[] = [];
  readonly #tableName: string;
  readonly #capacities = new Map<string, ReadonlyMap<string, number>[]>();
  #clientCount = 0;
  #skewsMs: readonly number[] = [0];
  #failure: { readonly error: unknown } | undefined;

  constructor(options: {
    readonly scenario: Scenario;
    readonly coverage: Coverage;
    readonly transport: DynamoTransport;
    readonly tableName: string;
  }) {
    const { scenario, coverage, transport, tableName } = options;
    this.scenario = scenario;
    this.coverage = coverage;
    this.random = seededRandom(scenario.seed ^ 0x5eed);
    this.#tableName = tableName;
    this.table = new WatchedTable({
      transport,
      tableName,
      time: this.time,
      coverage,
      tickMs: scenario.largestTickMs,
      charged: (entityId) => this.charged(entityId),
    });
    this.limits = new Map(scenario.limits);
    for (const [entityId, limits] of this.limits) this.#noteCapacities(entityId, limits);
    for (const skewMs of scenario.skewsMs) this.startClient(skewMs);
  }

  get reshapes(): Reshapes {
    const { counts } = this.coverage;
    return { splits: counts.get("split")!, merges: counts.get("merge")! };
  }

  /** Counts whether a bucket was split or merged since, between two moments of a call. */
  countReshapes(
    before: Reshapes,
    between: "decision and write" | "write and reply" | "take and end",
  ): void {
    const { splits, merges } = this.reshapes;
    if (splits > before.splits) this.coverage.count(`split between ${between}`);
    if (merges > before.merges) this.coverage.count(`merge between ${between}`);
  }

  startClient(skewMs: number, transport?: DynamoTransport): Client {
    this.#clientCount += 1;
    const { time, limits } = this;
    // A lone client looks at one bucket at a time.
    const scenario =
      transport === undefined ? this.scenario : { ...this.scenario, parentId: undefined };
    const common = {
      number: this.#clientCount,
      scenario,
      time,
      skewMs,
      tableName: this.#tableName,
      limits,
      reshapes: () => this.reshapes,
    };
    const client = new Client({ ...common, ...(transport !== undefined && { transport }) });
    if (transport === undefined) this.clients.push(client);
    this.noteSkew(skewMs);
    return client;
  }

  noteSkew(skewMs: number): void {
    this.#skewsMs = [...this.#skewsMs, skewMs];
    this.table.differenceMs = Math.max(...this.#skewsMs) - Math.min(...this.#skewsMs);
  }

  changeConfiguration(entityId: string): void {
    const limits = someLimits(
      this.random,
      this.limits.get(entityId)!.map(({ name }) => name),
    );
    this.limits.set(entityId, limits);
    this.#noteCapacities(entityId, limits);
    this.coverage.count("configuration change");
    this.tell(`limits of ${entityId} are now ${JSON.stringify(limits)}`);
  }

  tell(line: string): void {
    this.trace.push(`${String(this.time.nowMs - START_MS).padStart(8)}  ${line}`);
  }

  /** Runs what must not throw into the code under test; the schedule fails with it instead. */
  guarded(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.#failure ??= { error };
    }
  }

  throwIfFailed(): void {
    if (this.#failure !== undefined) throw this.#failure.error;
  }

  /** The entities that a call of one is charged to. */
  charged(entityId: string): readonly string[] {
    const { parentId } = this.scenario;
    return parentId === undefined || parentId === entityId ? [entityId] : [entityId, parentId];
  }

  /** Promise 3: it is true, and costs nothing. */
  refused(client: Client, operation: Operation): void {
    this.perhaps(operation);
    const fromMs = operation.startedAtMs - this.scenario.refusalMemoryMs;
    const amounts = new Map([...operation.effect].filter(([name]) => name !== GRANTS));
    const isTrue = this.charged(operation.entityId).some((entityId, index) => {
      const history = this.table.history(entityId);
      const firstState = Math.min(operation.statesBefore[index]! - 1, history.stateAt(fromMs));
      const window = {
        firstState,
        fromMs: operation.startedAtMs,
        process: client.number,
        skewMs: client.clock.lowestSkewMs,
      };
      return history.couldNotHold({ amounts, capacities: this.#capacities.get(entityId)! }, window);
    });
    if (!isTrue)
      throw new Error(
        `A call that always fitted was refused: ${operation.entityId} ${JSON.stringify([...operation.effect])}`,
      );
  }

  /**
   * A call that was not granted, or an end that failed: it counts for nothing, or, where the
   * network failed it, for at most its own cost.
   */
  perhaps(operation: Operation): void {
    const times = operation.kind === "settle" ? 1 + operation.faults : 1;
    if (operation.faults > 0)
      this.ledger.perhaps(this.charged(operation.entityId), operation.effect, times);
  }

  /**
   * An end that was answered. In doubt, a charge is repeated and a give-back is not.
   */
  ended({ entityId, effect, unknowns }: Operation): void {
    const charges = part(effect, (amount) => amount > 0);
    this.ledger.exactly(this.charged(entityId), charges);
    if (unknowns === 0)
      return this.ledger.exactly(
        this.charged(entityId),
        part(effect, (amount) => amount < 0),
      );
    this.ledger.perhaps(this.charged(entityId), charges, unknowns);
    this.ledger.perhaps(
      this.charged(entityId),
      part(effect, (amount) => amount < 0),
    );
  }

  /** What a process leaves behind: calls without an answer, and ends that have failed so far. */
  abandon({ underWay, leases }: Client): void {
    for (const operation of underWay) {
      operation.faults += 1;
      this.perhaps(operation);
    }
    for (const { ending, isBusy } of leases)
      if (ending !== undefined && !isBusy) this.perhaps(ending);
  }

  /** Promises 2 and 8: in the end, buckets were charged what the answers said. */
  compareLedger(): void {
    for (const client of this.clients) this.abandon(client);
    for (const entityId of this.table.entityIds) {
      const bucket = this.table.history(entityId).now;
      const counts = new Map([
        [GRANTS, Number(listGrants(bucket))],
        [cascaded(GRANTS), Number(listCascadedGrants(bucket))],
      ]);
      for (const { name } of this.limits.get(entityId)!) {
        counts.set(name, Number(getConsumed(bucket, name)) / 1000);
        counts.set(cascaded(name), Number(getCascaded(bucket, name)) / 1000);
      }
      for (const [name, counted] of counts) {
        const { least, most } = this.ledger.range(entityId, name);
        if (counted >= least && counted <= most) continue;
        throw new Error(
          `${entityId} was charged ${counted} ${name}, where its callers know of ${least} to ${most}`,
        );
      }
    }
  }

  #noteCapacities(entityId: string, limits: readonly ScenarioLimit[]): void {
    const known = this.#capacities.get(entityId) ?? [];
    this.#capacities.set(entityId, [
      ...known,
      new Map(limits.map(({ name, capacity }) => [name, capacity])),
    ]);
  }
}

function part(effect: Effect, belongs: (amount: number) => boolean): Effect {
  return new Map([...effect].filter(([, amount]) => belongs(amount)));
}
