import type { Receipt } from "../../../src/repository/port.ts";
import type { DynamoTransport } from "../../../src/repository/dynamodb/transport/transport.ts";
import { bucketProcess, type BucketProcess } from "../../support/bucket-process.ts";
import { Gate, type DecisionSurroundings, type Reshapes } from "./gate.ts";
import { GRANTS, reversed, type Effect } from "./ledger.ts";
import type { Scenario, ScenarioLimit } from "./scenario.ts";
import { LoneClock, ProcessClock, type SimulatedTime } from "../../support/simulated-time.ts";

/** What was granted and has not ended. */
export interface Lease {
  readonly receipt: Receipt;
  readonly entityId: string;
  taken: Effect;
  isBusy: boolean;
  /** How it ends; a second attempt must be the same. */
  ending: Operation | undefined;
  readonly reshapesBefore: Reshapes;
}

/** A call that has not been answered. */
export interface Operation {
  readonly kind: "take" | "charge" | "settle" | "give back" | "split" | "merge";
  readonly entityId: string;
  /** What it charges, if it is carried out. */
  readonly effect: Effect;
  readonly lease: Lease | undefined;
  startedAtMs: number;
  /** How many states its bucket, and that of its parent, had had when it started. */
  statesBefore: readonly number[];
  /**
   * Troubles that its process had on the network meanwhile, and those after which it is unknown
   * whether a write was applied.
   */
  faults: number;
  unknowns: number;
  attempts: number;
}

/** One process. */
export class Client {
  readonly number: number;
  readonly clock: ProcessClock;
  readonly gate: Gate;
  readonly process: BucketProcess;
  readonly leases: Lease[] = [];
  readonly underWay = new Set<Operation>();
  /** What goes back once it turns out that a rejected take was applied. */
  readonly owed: Operation[] = [];
  isAlive = true;

  constructor(options: {
    readonly number: number;
    readonly scenario: Scenario;
    readonly time: SimulatedTime;
    readonly skewMs: number;
    readonly tableName: string;
    readonly limits: ReadonlyMap<string, readonly ScenarioLimit[]>;
    readonly reshapes: () => Reshapes;
    /** In place of the gate, for a client that nothing happens to. */
    readonly transport?: DynamoTransport;
  }) {
    const { number, scenario, time, limits } = options;
    this.number = number;
    const ClockOf = options.transport === undefined ? ProcessClock : LoneClock;
    this.clock = new ClockOf(time, options.skewMs);
    this.gate = new Gate(() => ({
      decidedAtMs: this.clock.now(),
      decidedAtTrueMs: time.nowMs,
      surroundings: this.#surroundings(options.reshapes()),
    }));
    this.process = bucketProcess({
      transport: options.transport ?? this.gate,
      tableName: options.tableName,
      clock: this.clock,
      seed: scenario.seed * 100 + number,
      config: (key) => {
        const isStored =
          key.level === "entity" && key.resource === (scenario.expires ? "_default_" : RESOURCE);
        return { limits: isStored ? limits.get(key.entityId) : undefined };
      },
      parents: Object.fromEntries(
        scenario.entityIds.flatMap((id) =>
          scenario.parentId === undefined ? [] : [[id, scenario.parentId]],
        ),
      ),
      cacheTtlMs: scenario.cacheTtlMs,
      refusalMemoryMs: scenario.refusalMemoryMs,
      largestTickMs: scenario.largestTickMs,
      requestTimeoutMs: NEVER_MS,
      maxShards: scenario.maxShards,
      shareRequests: scenario.sharesRequests,
      onDecision: (item) => this.gate.noteDecision(item),
    });
  }

  /** A take has not been granted, and it is unknown whether it was applied. */
  owe(take: Operation): void {
    this.owed.push({ ...take, kind: "give back", effect: reversed(take.effect) });
  }

  #surroundings(reshapes: Reshapes): DecisionSurroundings {
    const [operations, owed] = [[...this.underWay], [...this.owed]];
    const mayGive = new Map<string, number>();
    for (const { kind, effect } of [...operations, ...owed])
      for (const [name, amount] of effect) {
        // What a call took may be given back when another bucket refuses it.
        const given = kind === "take" ? amount : Math.max(0, -amount);
        if (name !== GRANTS) mayGive.set(name, (mayGive.get(name) ?? 0) + given);
      }
    const mayCharge = operations.some(
      ({ kind, effect }) =>
        (kind === "settle" || kind === "charge") &&
        [...effect.values()].some((amount) => amount > 0),
    );
    return { process: this.number, mayCharge, mayGive, operations, owed, reshapes };
  }
}

/** The resource of all calls. */
export const RESOURCE = "gpt-4";

/** Time-outs are the schedule's: real time must not matter. */
const NEVER_MS = 600_000;
