/*
 * The network between one process and the table. Nothing passes by itself:
 *
 *   asked ──▶ applied by the engine ──▶ answered ──▶ delivered
 *     │                                    └───────▶ reply lost
 *     ├──▶ request lost, never sent, or throttled
 *     └──▶ caller told of a time-out ──▶ late: applied after all, or never
 */
import type { Operation } from "./client.ts";
import type { DynamoTransport } from "../../../src/repository/dynamodb/transport/transport.ts";

/** What the engine said. */
export type EngineReply =
  | { readonly ok: true; readonly output: object }
  | { readonly ok: false; readonly error: unknown };

/** A call between its process and the table. */
export interface HeldCall {
  readonly operation: string;
  readonly input: object;
  /**
   * What the clock of its process showed when it was decided: a repeated request acts as of its
   * first attempt.
   */
  readonly decidedAtMs: number;
  /** When that really was. */
  readonly decidedAtTrueMs: number;
  readonly surroundings: DecisionSurroundings;
  reply: EngineReply | undefined;
  /** What was read so far of a batch, which is not read at one moment. */
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
 * What a process had under way when it decided on a write, which tells what the write may carry.
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
  readonly #decided = new Map<
    string,
    Pick<HeldCall, "decidedAtMs" | "decidedAtTrueMs" | "surroundings">
  >();
  #isShut = false;
  readonly #now: () => Pick<HeldCall, "decidedAtMs" | "decidedAtTrueMs" | "surroundings">;

  constructor(now: () => Pick<HeldCall, "decidedAtMs" | "decidedAtTrueMs" | "surroundings">) {
    this.#now = now;
  }

  call(operation: string, input: object): Promise<object> {
    return new Promise((resolve, reject) => {
      if (this.#isShut) return reject(GONE);
      const text = JSON.stringify(input);
      const decided = this.#decided.get(text) ?? this.#now();
      this.#decided.set(text, decided);
      this.held.push({
        operation,
        input,
        ...decided,
        reply: undefined,
        firstHalf: undefined,
        reshapesAtReply: decided.surroundings.reshapes,
        resolve,
        reject,
      });
    });
  }

  close(): void {}

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

/** Those after which nobody knows whether a write was applied. */
export const AMBIGUOUS: ReadonlySet<keyof typeof NETWORK_ERRORS> = new Set([
  "connection reset",
  "time-out",
]);
