import { setTimeout as sleep } from "node:timers/promises";
import type { DynamoTransport } from "zae-limiter/dynamodb";

/** What was sent since the counts were last taken. */
export interface Sent {
  readonly requests: number;
  /** What the requests carried: the statements of a shared one, one of any other. */
  readonly writes: number;
  readonly mostUnderWay: number;
}

/** A transport whose replies come later, as from a table that is some way off; it counts. */
export class DistantTransport implements DynamoTransport {
  readonly #transport: DynamoTransport;
  /** What is added to each request. */
  latencyMs = 0;
  #requests = 0;
  #writes = 0;
  #underWay = 0;
  #mostUnderWay = 0;

  constructor(transport: DynamoTransport) {
    this.#transport = transport;
  }

  async call(
    operation: string,
    input: object,
    options: { readonly signal: AbortSignal },
  ): Promise<object> {
    const { Statements: statements } = input as { readonly Statements?: readonly unknown[] };
    this.#requests += 1;
    this.#writes += statements?.length ?? 1;
    this.#underWay += 1;
    this.#mostUnderWay = Math.max(this.#mostUnderWay, this.#underWay);
    try {
      const output = await this.#transport.call(operation, input, options);
      if (this.latencyMs > 0) await sleep(this.latencyMs);
      return output;
    } finally {
      this.#underWay -= 1;
    }
  }

  /** The counts, which begin again at zero. */
  takeCounts(): Sent {
    const sent = {
      requests: this.#requests,
      writes: this.#writes,
      mostUnderWay: this.#mostUnderWay,
    };
    this.#requests = this.#writes = this.#mostUnderWay = 0;
    return sent;
  }

  /** The transport belongs to its opener. */
  close(): void {}
}
