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

/**
 * A transport of a process that dies between two writes, however far its work has come. Its writes
 * are carried out one after another, so that it dies after exactly so many.
 */
export class MortalTransport implements DynamoTransport {
  readonly #inner: DynamoTransport;
  readonly #lifetime: Lifetime;
  #writes = 0;
  #lastWrite: Promise<unknown> = Promise.resolve();

  constructor(inner: DynamoTransport, lifetime: Lifetime) {
    this.#inner = inner;
    this.#lifetime = lifetime;
  }

  get isDead(): boolean {
    return this.#writes >= this.#lifetime.writes;
  }

  async call(operation: string, input: object, options: CallOptions): Promise<object> {
    if (!WRITES.has(operation) || this.#lifetime.writes === Infinity)
      return this.#send(operation, input, options);
    const written = this.#lastWrite.then(async () => this.#write(operation, input, options));
    this.#lastWrite = written.catch(() => {});
    return written;
  }

  close(): void {}

  async #write(operation: string, input: object, options: CallOptions): Promise<object> {
    // A condition that is not met throws: the process has not come any further.
    const answer = await this.#send(operation, input, options);
    this.#writes += 1;
    if (this.isDead && !this.#lifetime.seesLastAnswer) throw death();
    return answer;
  }

  async #send(operation: string, input: object, options: CallOptions): Promise<object> {
    const { random, failureChance } = this.#lifetime;
    if (this.isDead) throw death();
    const fails = random() < failureChance;
    if (fails && random() < 0.5) throw internalError();
    const answer = await this.#inner.call(operation, input, options);
    if (fails) throw internalError();
    return answer;
  }
}

interface CallOptions {
  readonly signal: AbortSignal;
}

function death(): Error {
  return new Error("this process is dead");
}

function internalError(): Error {
  return Object.assign(new Error("made by the test"), { name: "InternalServerError" });
}
