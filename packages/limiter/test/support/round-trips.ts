import type { DynamoTransport } from "../../src/repository/dynamodb/transport/transport.ts";

/**
 * Knows what is under way, and counts round trips: requests that are under way together are one.
 */
export class RoundTrips implements DynamoTransport {
  readonly #inner: DynamoTransport;
  #underWay = 0;
  count = 0;

  constructor(inner: DynamoTransport) {
    this.#inner = inner;
  }

  get isIdle(): boolean {
    return this.#underWay === 0;
  }

  async call(
    operation: string,
    input: object,
    options: { readonly signal: AbortSignal },
  ): Promise<object> {
    if (this.#underWay === 0) this.count += 1;
    this.#underWay += 1;
    try {
      return await this.#inner.call(operation, input, options);
    } finally {
      this.#underWay -= 1;
    }
  }

  close(): void {
    this.#inner.close();
  }
}
