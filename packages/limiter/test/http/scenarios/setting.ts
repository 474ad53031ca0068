import { onTestFinished } from "vitest";
import { Limit, RateLimiter, type RateLimiterOptions } from "zae-limiter";
import type { HttpOutcome } from "zae-limiter/http";
import { MemoryRepository } from "zae-limiter/memory";
import { faultyRepository, type Fault } from "zae-limiter/testing";
import type { Sent } from "../client.ts";
import type {
  Call,
  CallOptions,
  Handler,
  RunningServer,
  ServerAdapter,
} from "../servers/server-adapter.ts";
import { WatchedClock } from "../../support/watched-clock.ts";

/** Limits of 3 requests and 100 tokens a minute for every key, and what a test does with them. */
export class Setting {
  readonly clock = new WatchedClock();
  readonly limiter: RateLimiter;
  /** The faults of the store, by operation. */
  readonly faults = new Map<string, Fault>();
  /** The operations of the store so far. */
  readonly operations: string[] = [];
  readonly repository: MemoryRepository;
  readonly #adapter: ServerAdapter;

  private constructor(adapter: ServerAdapter, further: Partial<RateLimiterOptions>) {
    this.#adapter = adapter;
    this.repository = new MemoryRepository({ clock: this.clock });
    const repository = faultyRepository(this.repository, (operation) => {
      this.operations.push(operation);
      return this.faults.get(operation);
    });
    this.limiter = new RateLimiter({ repository, ...further });
  }

  static async create(
    adapter: ServerAdapter,
    further: Partial<RateLimiterOptions> = {},
  ): Promise<Setting> {
    const setting = new Setting(adapter, further);
    await setting.repository.setSystemDefaults([
      Limit.perMinute("rpm", 3),
      Limit.perMinute("tpm", 100),
    ]);
    return setting;
  }

  /** Options of a middleware: the header `x-key` says who it is, and a request takes one of rpm. */
  options(more: Partial<CallOptions> = {}): CallOptions {
    return {
      limiter: this.limiter,
      entity: (call) => call.header("x-key"),
      resource: "chat",
      consume: { rpm: 1 },
      ...more,
    };
  }

  /** Starts a server that is closed after the test. */
  async serve(
    middlewares: readonly Partial<CallOptions>[],
    handler: Handler = () => ({ body: "hello" }),
  ): Promise<RunningServer> {
    const server = await this.#adapter.start(
      middlewares.map((each) => this.options(each)),
      handler,
    );
    onTestFinished(() => server.close());
    return server;
  }

  /** Starts a server with one middleware, and lists how its requests ended. */
  async serveRecorded(handler?: Handler, more: Partial<CallOptions> = {}) {
    const ended: Ended[] = [];
    const settle: CallOptions["settle"] = ({ status, completed }) =>
      void ended.push({ status, completed });
    return { ended, server: await this.serve([{ ...more, settle }], handler) };
  }

  /** The tokens left of a limit. */
  async left(limit = "rpm", key = "key-1", resource = "chat"): Promise<number | undefined> {
    return (await this.limiter.available(key, resource))[limit];
  }
}

/** How a request ended. */
export type Ended = Pick<HttpOutcome<Call>, "status" | "completed">;

/** A request of `key-1`. */
export function byKey({ port }: { readonly port: number }, more: Omit<Sent, "port"> = {}): Sent {
  return { ...more, port, headers: { "x-key": "key-1", ...more.headers } };
}

/** Some turns of the event loop: long enough for a failure to show. */
export async function nextTurns(): Promise<void> {
  for (let turn = 0; turn < 10; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

/** One side waits until the other one opens it. */
export class Gate {
  open!: () => void;
  readonly opened = new Promise<void>((resolve) => {
    this.open = resolve;
  });
}

/** A body whose pieces and end are sent by the test. */
export class HeldBody {
  readonly #pieces: string[] = [];
  #isEnded = false;
  #wake: () => void = () => {};

  send(piece: string): void {
    this.#pieces.push(piece);
    this.#wake();
  }

  end(): void {
    this.#isEnded = true;
    this.#wake();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<string> {
    for (;;) {
      const piece = this.#pieces.shift();
      if (piece !== undefined) yield piece;
      else if (this.#isEnded) return;
      else await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }
}
