import type { DynamoTransport } from "../../src/repository/dynamodb/transport/transport.ts";
import type { Clock } from "../../src/repository/system-clock.ts";
import { carriedOut, type StatementReply } from "./statement-faults.ts";
import { listStatements, writtenKeys } from "./written-items.ts";

/** What one item takes in a second, and saves up for one. */
const ITEM_UNITS_PER_SECOND = 1000;

interface Budget {
  units: number;
  asOfMs: number;
}

/**
 * Takes a thousand write units a second of each item, by a clock of the test's, and throttles the
 * rest, as DynamoDB does; of the whole table as many as the test says. Failed conditions count, and
 * writes of a transaction count twice.
 */
export class ThrottledItems implements DynamoTransport {
  readonly #inner: DynamoTransport;
  readonly #clock: Clock;
  readonly #tableUnitsPerSecond: number;
  readonly #budgets = new Map<string, Budget>();
  /** Writes turned away. */
  throttled = 0;
  /** Write units taken. */
  units = 0;

  constructor(inner: DynamoTransport, clock: Clock, { tableUnitsPerSecond = Infinity } = {}) {
    this.#inner = inner;
    this.#clock = clock;
    this.#tableUnitsPerSecond = tableUnitsPerSecond;
  }

  async call(
    operation: string,
    input: object,
    options: { readonly signal: AbortSignal },
  ): Promise<object> {
    if (operation === "BatchExecuteStatement") return this.#callStatements(input, options);
    this.#spend(
      operation,
      writtenKeys(operation, input).map(({ PK }) => PK.S),
    );
    return this.#inner.call(operation, input, options);
  }

  close(): void {
    this.#inner.close();
  }

  /** Each statement is throttled for itself, and its reply has no reason. */
  async #callStatements(input: object, options: { readonly signal: AbortSignal }): Promise<object> {
    const { statements, replies } = carriedOut(listStatements(input), ({ PK }) => {
      try {
        this.#spend("UpdateItem", [PK.S]);
        return undefined;
      } catch {
        return "throughput";
      }
    });
    if (statements.length === 0) return { Responses: replies([]) };
    const changed = { ...input, Statements: statements };
    const output = (await this.#inner.call("BatchExecuteStatement", changed, options)) as {
      readonly Responses: readonly StatementReply[];
    };
    return { ...output, Responses: replies(output.Responses) };
  }

  #spend(operation: string, items: readonly string[]): void {
    if (items.length === 0) return;
    const units = operation === "TransactWriteItems" ? 2 : 1;
    const budgets = items.map((item) => this.#budget(item, ITEM_UNITS_PER_SECOND));
    const table = this.#budget("", this.#tableUnitsPerSecond);
    const isOver = budgets.map((budget) => budget.units < 1 || table.units < 1);
    if (isOver.includes(true)) {
      this.throttled += 1;
      const reason =
        table.units < 1
          ? "TableWriteProvisionedThroughputExceeded"
          : "TableWriteKeyRangeThroughputExceeded";
      const ThrottlingReasons = [{ reason }];
      throw operation === "TransactWriteItems"
        ? cancel(isOver)
        : nameIt("ProvisionedThroughputExceededException", { ThrottlingReasons });
    }
    for (const budget of [...budgets, ...items.map(() => table)]) budget.units -= units;
    this.units += units * items.length;
  }

  /** A budget that is not used up takes a whole request, and is below zero then. */
  #budget(name: string, unitsPerSecond: number): Budget {
    const nowMs = this.#clock.now();
    const budget = this.#budgets.get(name) ?? { units: unitsPerSecond, asOfMs: nowMs };
    if (nowMs > budget.asOfMs)
      budget.units = Math.min(
        unitsPerSecond,
        budget.units + ((nowMs - budget.asOfMs) * unitsPerSecond) / 1000,
      );
    budget.asOfMs = nowMs;
    this.#budgets.set(name, budget);
    return budget;
  }
}

function nameIt(name: string, fields: object): Error {
  return Object.assign(new Error("Level of throughput exceeded."), { name, ...fields });
}

function cancel(isOver: readonly boolean[]): Error {
  const CancellationReasons = isOver.map((over) => ({
    Code: over ? "ProvisionedThroughputExceeded" : "None",
  }));
  return nameIt("TransactionCanceledException", { CancellationReasons });
}
