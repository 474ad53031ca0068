import type { DynamoTransport } from "../../src/repository/dynamodb/transport.ts";

/** A call that was stopped on its way. */
export interface HeldCall {
  /** Resolves when the call has come. */
  readonly arrived: Promise<void>;
  readonly release: () => void;
}

/** Holds a call until a test lets it go, so that the test decides what happens while it is under way. */
export class HeldTransport implements DynamoTransport {
  readonly #inner: DynamoTransport;
  /** What happens before each call goes on. */
  before: (operation: string) => Promise<void> = async () => {};
  #next: { readonly operation: string; readonly arrive: () => void; readonly go: Promise<void> } | undefined;

  constructor(inner: DynamoTransport) {
    this.#inner = inner;
  }

  /** Holds the next call of an operation, and only that. */
  hold(operation: string): HeldCall {
    let [arrive, release] = [(): void => {}, (): void => {}];
    const arrived = new Promise<void>((resolve) => (arrive = resolve));
    const go = new Promise<void>((resolve) => (release = resolve));
    this.#next = { operation, arrive, go };
    return { arrived, release: () => release() };
  }

  async call(operation: string, input: object, options: { readonly signal: AbortSignal }): Promise<object> {
    const held = this.#next;
    if (held?.operation === operation) {
      this.#next = undefined;
      held.arrive();
      await held.go;
    }
    await this.before(operation);
    return this.#inner.call(operation, input, options);
  }

  close(): void {
    this.#inner.close();
  }
}
