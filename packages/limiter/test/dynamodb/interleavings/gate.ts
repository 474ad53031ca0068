/*
 * The network between one process and the table. Nothing passes by itself:
 *
 *   asked ──▶ applied by the engine ──▶ answered ──▶ delivered
 *     │                                    └───────▶ reply lost
 *     ├──▶ request lost, never sent, or throttled
 *     ├──▶ statements of a batch fail one by one ──▶ the others are applied
 *     └──▶ caller told of a time-out ──▶ late: applied after all, or never
 */
import type { StatementFault } from "../../support/statement-faults.ts";
import { writtenKeys, type RequestKey } from "../../support/written-items.ts";
import type { Operation } from "./client.ts";
import type { DynamoTransport } from "../../../src/repository/dynamodb/transport/transport.ts";

/** What the engine said. */
export type EngineReply =
  | { readonly ok: true; readonly output: object }
  | { readonly ok: false; readonly error: unknown };

/** When and among what a process decided on a write. */
export interface Decision {
  /**
   * What the clock of its process showed when it was decided: a repeated request acts as of its
   * first attempt, and one that waited for others as of when it began to wait.
   */
  readonly decidedAtMs: number;
  /** When that really was. */
  readonly decidedAtTrueMs: number;
  readonly surroundings: DecisionSurroundings;
}

/** A call between its process and the table. */
export interface HeldCall extends Decision {
  readonly operation: string;
  readonly input: object;
  /** The decisions on its writes, in their order; those of a transaction are one. */
  readonly decisions: readonly Decision[];
  /** What becomes of single statements of a batch. */
  faultOf: ((key: RequestKey) => StatementFault | undefined) | undefined;
  reply: EngineReply | undefined;
  /** What was done so far of a batch, which is not read or written at one moment. */
  firstHalf: object | undefined;
  /** When it was applied. */
  reshapesAtReply: Reshapes;
  resolve(output: object): void;
  reject(error: unknown): void;
}

/** How often buckets were split and merged so far. */
export interface Reshapes {
  readonly splits: number;
  readonly merges: number;
}

/**
 * What a process had under way when it decided on a write, which shows what the write may carry.
 */
export interface DecisionSurroundings {
  readonly process: number;
  /** Whether something that may cause debt was under way. */
  readonly mayCharge: boolean;
  /** The most that the write may give back, in tokens by limit. */
  readonly mayGive: ReadonlyMap<string, number>;
  /** Calls under way, oldest first. */
  readonly operations: readonly Operation[];
  /** What may have to go back for calls that ended before. */
  readonly owed: readonly Operation[];
  readonly reshapes: Reshapes;
}

/** Holds every request until the schedule lets it pass. */
export class Gate implements DynamoTransport {
  held: HeldCall[] = [];
  /** By the text of requests that are not told of before. */
  readonly #decided = new Map<string, Decision>();
  /** The last decision on each item: there is one write of it at a time. */
  readonly #decidedOn = new Map<string, Decision>();
  #isShut = false;
  readonly #now: () => Decision;

  constructor(now: () => Decision) {
    this.#now = now;
  }

  /** A write of an item was decided, and is sent now or later. */
  noteDecision(item: string): void {
    this.#decidedOn.set(item, this.#now());
  }

  call(operation: string, input: object): Promise<object> {
    return new Promise((resolve, reject) => {
      if (this.#isShut) return reject(GONE);
      const decisions = this.#decisions(operation, input);
      const decided = decisions[0]!;
      this.held.push({
        operation,
        input,
        ...decided,
        decisions,
        faultOf: undefined,
        reply: undefined,
        firstHalf: undefined,
        reshapesAtReply: decided.surroundings.reshapes,
        resolve,
        reject,
      });
    });
  }

  close(): void {}

  #decisions(operation: string, input: object): readonly Decision[] {
    if (operation !== "TransactWriteItems") {
      const noted = writtenKeys(operation, input).map(({ PK }) => this.#decidedOn.get(PK.S));
      if (noted.length > 0) return noted.map((decision) => decision ?? this.#now());
    }
    const text = JSON.stringify(input);
    const decided = this.#decided.get(text) ?? this.#now();
    this.#decided.set(text, decided);
    return [decided];
  }

  /** Ends what its process had under way, so that nothing of it is left in this real one. */
  shut(): void {
    this.#isShut = true;
    for (const call of this.held) call.reject(GONE);
    this.held = [];
  }

  remove(call: HeldCall): void {
    this.held = this.held.filter((other) => other !== call);
  }
}

const GONE = Object.assign(new Error("This process is gone"), { name: "AccessDeniedException" });

/** The operations that may change an item. */
export const WRITES: ReadonlySet<string> = new Set([
  "UpdateItem",
  "PutItem",
  "TransactWriteItems",
  "DeleteItem",
  "BatchWriteItem",
  "BatchExecuteStatement",
]);

/** Errors as they come from the network. */
export const NETWORK_ERRORS = {
  "connection reset": () => Object.assign(new Error("socket hang up"), { code: "ECONNRESET" }),
  "time-out": () => Object.assign(new Error("No answer"), { name: "TimeoutError" }),
  "connection refused": () =>
    Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" }),
  throttled: () =>
    Object.assign(new Error("Too fast"), { name: "ProvisionedThroughputExceededException" }),
  conflict: (operation) =>
    operation === "TransactWriteItems"
      ? Object.assign(new Error("Another one"), {
          name: "TransactionCanceledException",
          CancellationReasons: [{ Code: "TransactionConflict" }],
        })
      : Object.assign(new Error("Another one"), { name: "TransactionConflictException" }),
} as const satisfies Readonly<Record<string, (operation: string) => Error>>;

/** Those after which it is unknown whether a write was applied. */
export const AMBIGUOUS: ReadonlySet<keyof typeof NETWORK_ERRORS> = new Set([
  "connection reset",
  "time-out",
]);
