import type { DynamoTransport } from "../../src/repository/dynamodb/transport/transport.ts";

/** A call that was stopped on its way. */
export interface HeldCall {
  /** Resolves when the call has come. */
  readonly arrived: Promise<void>;
  readonly release: () => void;
}

/**
 * Holds a call until a test lets it go, so that the test decides what happens while it is under
 * way.
 */
export class HeldTransport implements DynamoTransport {
  readonly #inner: DynamoTransport;
  /** Called before each call continues. */
  before: (operation: string) => Promise<void> = async () => {};
  /** Called after each call, before its answer arrives. */
  after: (operation: string) => Promise<void> = async () => {};
  #next:
    | {
        readonly operation: string;
        readonly what: "call" | "answer";
        readonly pass: () => Promise<void>;
      }
    | undefined;

  constructor(inner: DynamoTransport) {
    this.#inner = inner;
  }

  /** Holds the next call of an operation, and only that; or its answer, until it is old. */
  hold(operation: string, what: "call" | "answer" = "call"): HeldCall {
    let [arrive, release] = [(): void => {}, (): void => {}];
    const arrived = new Promise<void>((resolve) => (arrive = resolve));
    const go = new Promise<void>((resolve) => (release = resolve));
    const pass = async (): Promise<void> => {
      arrive();
      await go;
    };
    this.#next = { operation, what, pass };
    return { arrived, release: () => release() };
  }

  async call(
    operation: string,
    input: object,
    options: { readonly signal: AbortSignal },
  ): Promise<object> {
    const held = this.#next?.operation === operation ? this.#next : undefined;
    if (held !== undefined) this.#next = undefined;
    if (held?.what === "call") await held.pass();
    await this.before(operation);
    const answer = this.#inner.call(operation, input, options);
    // That a condition failed is an answer too.
    await Promise.allSettled([answer]);
    await this.after(operation);
    if (held?.what === "answer") await held.pass();
    return answer;
  }

  close(): void {
    this.#inner.close();
  }
}
