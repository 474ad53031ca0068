import type { DynamoTransport } from "../../src/repository/dynamodb/transport.ts";

/** Counts round trips: requests that are under way together are one. */
export class RoundTrips implements DynamoTransport {
  readonly #inner: DynamoTransport;
  #underWay = 0;
  count = 0;

  constructor(inner: DynamoTransport) {
    this.#inner = inner;
  }

  async call(operation: string, input: object, options: { readonly signal: AbortSignal }): Promise<object> {
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
