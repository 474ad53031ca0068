import type { Random } from "zae-limiter";
import type { DynamoTransport } from "zae-limiter/dynamodb";

/** How long a process lives, and what goes wrong until then. */
export interface Lifetime {
  /** After so many writes that the table has carried out, it never sends anything again. */
  readonly writes: number;
  /** Whether it learns that the last of them was carried out. */
  readonly seesLastAnswer: boolean;
  /** How likely a request fails, before or after it was carried out. */
  readonly failureChance: number;
  readonly random: Random;
}

const WRITES: ReadonlySet<string> = new Set(["UpdateItem", "PutItem", "TransactWriteItems"]);

/** A transport of a process that dies between two writes, however far its work has come. */
export class MortalTransport implements DynamoTransport {
  readonly #inner: DynamoTransport;
  readonly #lifetime: Lifetime;
  #writes = 0;

  constructor(inner: DynamoTransport, lifetime: Lifetime) {
    this.#inner = inner;
    this.#lifetime = lifetime;
  }

  get isDead(): boolean {
    return this.#writes >= this.#lifetime.writes;
  }

  async call(
    operation: string,
    input: object,
    options: { readonly signal: AbortSignal },
  ): Promise<object> {
    const { random, failureChance, seesLastAnswer } = this.#lifetime;
    if (this.isDead) throw new Error("this process is dead");
    const fails = random() < failureChance;
    if (fails && random() < 0.5) throw internalError();
    // It is sent before the next request can ask whether the process is dead.
    const isWrite = WRITES.has(operation);
    if (isWrite) this.#writes += 1;
    const isLast = this.isDead;
    try {
      const answer = await this.#inner.call(operation, input, options);
      if (fails) throw internalError();
      if (isWrite && isLast && !seesLastAnswer) throw new Error("this process is dead");
      return answer;
    } catch (error) {
      // A refused condition changes nothing, so the process has not come any further.
      if (isWrite && (error as Error).name === "ConditionalCheckFailedException") this.#writes -= 1;
      throw error;
    }
  }

  close(): void {}
}

function internalError(): Error {
  return Object.assign(new Error("made by the test"), { name: "InternalServerError" });
}
