import type { DynamoDB } from "@aws-sdk/client-dynamodb";
import type { RepositoryStatistics } from "zae-limiter";
import type { DynamoTransport } from "zae-limiter/dynamodb";

/** What a number of operations was billed. */
export interface Bill {
  readonly requests: number;
  readonly writeUnits: number;
  readonly readUnits: number;
  /** What our repository counted meanwhile. */
  readonly statistics?: RepositoryStatistics;
}

interface Send<Output> {
  readonly operation: string;
  readonly input: object;
  /** Sends it, perhaps with a wish added to the input. */
  readonly next: (input: object) => Promise<Output>;
  readonly toAnswer: (output: Output) => object;
}

/**
 * Asks the engine for its own accounting while something is looked at; costs one comparison per
 * call otherwise.
 */
export class BillMeter {
  #counting: { requests: number; writeUnits: number; readUnits: number } | undefined;

  /** What the work was billed. */
  async measure(work: () => Promise<void>): Promise<Bill> {
    const counting = (this.#counting = { requests: 0, writeUnits: 0, readUnits: 0 });
    try {
      await work();
    } finally {
      this.#counting = undefined;
    }
    return counting;
  }

  /** Counts what an SDK client sends. */
  watch(client: DynamoDB): void {
    client.middlewareStack.add(
      (next, { commandName = "" }) =>
        async (call) =>
          this.#send({
            operation: commandName,
            input: call.input,
            next: async (input) => next({ ...call, input }),
            toAnswer: ({ output }) => output,
          }),
      { step: "initialize", name: "countUnits" },
    );
  }

  /** The same transport, counted. */
  wrap(transport: DynamoTransport): DynamoTransport {
    return {
      call: async (operation, input, options) =>
        this.#send({
          operation,
          input,
          next: async (asked) => transport.call(operation, asked, options),
          toAnswer: (output) => output,
        }),
      close: () => transport.close(),
    };
  }

  async #send<Output>({ operation, input, next, toAnswer }: Send<Output>): Promise<Output> {
    const counting = this.#counting;
    if (counting === undefined) return next(input);
    counting.requests += 1;
    try {
      const output = await next({ ...input, ReturnConsumedCapacity: "INDEXES" });
      const units = sumUnits(toAnswer(output));
      if (/Get|Query|Scan/.test(operation)) counting.readUnits += units;
      else counting.writeUnits += units;
      return output;
    } catch (error) {
      // AWS bills a condition that failed; the engine's reply does not tell.
      if (isConditionFailure(error)) counting.writeUnits += 1;
      throw error;
    }
  }
}

/** Whether a write was refused by its condition. */
export function isConditionFailure(error: unknown): boolean {
  return error instanceof Error && error.name === "ConditionalCheckFailedException";
}

function sumUnits(output: object): number {
  const { ConsumedCapacity: consumed } = output as {
    ConsumedCapacity?: { CapacityUnits?: number } | { CapacityUnits?: number }[];
  };
  return [consumed ?? []].flat().reduce((sum, { CapacityUnits = 0 }) => sum + CapacityUnits, 0);
}
