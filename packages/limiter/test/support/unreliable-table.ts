import type { AttributeMap } from "../../src/repository/dynamodb/transport/attribute-values.ts";
import type { DynamoTransport } from "../../src/repository/dynamodb/transport/transport.ts";
import { createError, type ScriptedTable } from "./scripted-table.ts";
import { between } from "./seeded/random-choice.ts";

/** What goes wrong, and how often; fractions of all requests. */
export interface Unreliability {
  /** The table refuses the request. */
  readonly throttled: number;
  /** The request is carried out, and the answer is lost. */
  readonly unanswered: number;
  /** The request is lost, and arrives at some later time. */
  readonly late: number;
  /** A failed condition does not show the item. */
  readonly untold: number;
}

/** Requests that were lost, and have not arrived yet. */
export type LateRequests = (() => Promise<void>)[];

/** The way of one process to a table. Anything may get lost on it, and it ends with the process. */
export class UnreliableTable implements DynamoTransport {
  readonly #table: ScriptedTable;
  readonly #random: () => number;
  readonly #rates: Unreliability;
  readonly #late: LateRequests;
  /** Requests until the process dies. */
  #left: number;

  constructor(options: {
    readonly table: ScriptedTable;
    readonly random: () => number;
    readonly rates: Unreliability;
    readonly late: LateRequests;
    /** Requests until the process dies. */
    readonly left: number;
  }) {
    this.#table = options.table;
    this.#random = options.random;
    this.#rates = options.rates;
    this.#late = options.late;
    this.#left = options.left;
  }

  get isDead(): boolean {
    return this.#left < 0;
  }

  async call(operation: string, input: object): Promise<object> {
    for (let turns = between(this.#random, 0, 3); turns > 0; turns -= 1) await Promise.resolve();
    this.#left -= 1;
    if (this.isDead) throw createError("ProcessDied");
    const arrive = (): Promise<object> => this.#table.call(operation, structuredClone(input));
    const { throttled, late, unanswered, untold } = this.#rates;
    const chance = this.#random();
    if (chance < throttled) throw createError("ThrottlingException");
    if (chance < throttled + late) {
      this.#late.push(async () => void (await arrive().catch(() => {})));
      throw createError("TimeoutError");
    }
    try {
      const answer = await arrive();
      if (chance > 1 - unanswered) throw createError("TimeoutError");
      return answer;
    } catch (error) {
      if (chance > 1 - unanswered) throw createError("TimeoutError");
      if (this.#random() < untold) delete (error as { Item?: AttributeMap }).Item;
      throw error;
    }
  }

  close(): void {}
}
