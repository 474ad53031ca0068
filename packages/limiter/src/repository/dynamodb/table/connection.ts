import { randomUUID } from "node:crypto";
import { setMaxListeners } from "node:events";
import { InfrastructureNotFoundError, RateLimiterUnavailable } from "../../../core/errors.ts";
import {
  monotonicMs,
  startTimeout,
  type Clock,
  type Random,
  type Timeout,
} from "../../system-clock.ts";
import type { AttributeMap } from "../transport/attribute-values.ts";
import {
  ConditionFailed,
  contention,
  buildMissingTableError,
  TransactionCancelled,
  translateError,
} from "./table-errors.ts";
import { classifyError, type CancellationReason } from "../transport/failure.ts";
import { isTransient, retry, type RetryOptions } from "./retry.ts";
import type { DynamoTransport } from "../transport/transport.ts";

/** What a connection is made of. */
export interface ConnectionOptions {
  readonly transport: DynamoTransport;
  readonly tableName: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly requestTimeoutMs: number;
  readonly maxAttempts: number;
}

/** A write whose condition may not hold. */
export type Conditional<Output> =
  | { readonly applied: true; readonly output: Output }
  | { readonly applied: false; readonly item: AttributeMap | undefined };

/** A transaction that may be cancelled for a reason that a retry does not remove. */
export type Transacted =
  | { readonly applied: true }
  | { readonly applied: false; readonly reasons: readonly CancellationReason[] };

/** DynamoDB bills a write of a transaction twice. */
export const TRANSACTION_WRITE_UNITS = 2;

/** One write of a transaction. */
export type TransactItem =
  | { readonly Put: object }
  | { readonly Update: object }
  | { readonly Delete: object }
  | { readonly ConditionCheck: object };

interface CallOptions {
  readonly signal?: AbortSignal | undefined;
}

/**
 * Calls one table. Every call has a time-out, errors are translated here and nowhere else, and
 * nothing is retried unless the caller asks for it.
 */
export class Connection {
  readonly tableName: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly #transport: DynamoTransport;
  readonly #requestTimeoutMs: number;
  readonly #maxAttempts: number;
  readonly #timeouts: SharedTimeouts;
  #requests = 0;
  #retries = 0;
  /** Whether the table has ever answered. */
  #wasThere = false;
  readonly #losses = { count: 0 };
  #isClosed = false;

  constructor(options: ConnectionOptions) {
    this.#transport = options.transport;
    this.tableName = options.tableName;
    this.clock = options.clock;
    this.random = options.random;
    this.#requestTimeoutMs = options.requestTimeoutMs;
    this.#maxAttempts = options.maxAttempts;
    this.#timeouts = new SharedTimeouts(options.requestTimeoutMs);
  }

  /** Requests that were sent, each attempt counted. */
  get requests(): number {
    return this.#requests;
  }

  /** Retries that were made. */
  get retries(): number {
    return this.#retries;
  }

  /** How often the table was missing after it had been there. */
  get losses(): { readonly count: number } {
    return this.#losses;
  }

  /** The most attempts at each piece of work. */
  get maxAttempts(): number {
    return this.#maxAttempts;
  }

  /** Counts a retry that the caller makes itself. */
  countRetry(): void {
    this.#retries += 1;
  }

  /** One attempt. `TableName` is added unless the input names its tables, or a stream, itself. */
  async call<Output extends object>(
    operation: string,
    input: object,
    { signal }: CallOptions = {},
  ): Promise<Output> {
    signal?.throwIfAborted();
    // A transport of the caller's stays open, and the SDK's client would simply connect again. A
    // `TableUnavailable` would be retried, and the pauses would keep the process alive.
    if (this.#isClosed)
      throw new RateLimiterUnavailable(`The repository on table ${this.tableName} is closed.`);
    this.#requests += 1;
    const timeout = this.#timeouts.begin();
    const either =
      signal === undefined ? timeout.signal : AbortSignal.any([signal, timeout.signal]);
    try {
      const output = await this.#transport.call(operation, this.#address(input), {
        signal: either,
      });
      this.#wasThere = true;
      return output as Output;
    } catch (error) {
      // An abort by the caller is reported with its reason. Ours is a time-out, even if the
      // transport reports another error, unless it looked for credentials all the time and found
      // none.
      if (signal?.aborted) throw signal.reason;
      const isLate = timeout.signal.aborted && classifyError(error).kind !== "credentials";
      const failure = translateError(isLate ? timeout.signal.reason : error, {
        tableName: this.tableName,
        operation,
      });
      const isMissing = failure instanceof InfrastructureNotFoundError && !isOfStream(input);
      if (!isMissing || !this.#wasThere) throw failure;
      this.#losses.count += 1;
      throw buildMissingTableError(this.tableName, { cause: failure.cause });
    } finally {
      timeout.end();
    }
  }

  /**
   * Sends a request with bounded retries, for what may be repeated: reads, and writes that their
   * token or their condition makes idempotent.
   */
  async repeat<Output extends object>(
    operation: string,
    input: object,
    options: CallOptions = {},
  ): Promise<Output> {
    return retry(
      async () => this.call<Output>(operation, input, options),
      this.retryOptions(options),
    );
  }

  /** One attempt at a conditional write; a condition that does not hold is returned as a value. */
  conditional<Output extends object>(
    operation: string,
    input: object,
    options: CallOptions = {},
  ): Promise<Conditional<Output>> {
    return this.call<Output>(operation, input, options).then(
      (output) => ({ applied: true, output }),
      (error: unknown) => {
        if (error instanceof ConditionFailed) return { applied: false, item: error.item };
        throw error;
      },
    );
  }

  /**
   * A conditional write with bounded retries, for one whose condition makes it harmless to repeat
   * it after it was applied.
   */
  async repeatConditional<Output extends object>(
    operation: string,
    input: object,
  ): Promise<Conditional<Output>> {
    return retry(async () => this.conditional<Output>(operation, input), this.retryOptions());
  }

  /**
   * Sends a transaction, and retries it under the same token when its outcome is unknown or it
   * conflicted with another one. The token is truly random and never comes from the injected
   * `random`: two processes with one seed would take each other's transactions for their own.
   */
  async transact(items: readonly TransactItem[], options: CallOptions = {}): Promise<Transacted> {
    const input = {
      TransactItems: items.map((item) => this.#addressItem(item)),
      ClientRequestToken: randomUUID(),
    };
    try {
      await this.repeat("TransactWriteItems", input, options);
      return { applied: true };
    } catch (error) {
      if (error instanceof TransactionCancelled && !isTransient(error))
        return { applied: false, reasons: error.reasons };
      throw error instanceof TransactionCancelled
        ? contention("a transaction", this.tableName, { cause: error })
        : error;
    }
  }

  /** How this connection retries. */
  retryOptions({ signal }: CallOptions = {}): RetryOptions {
    return {
      clock: this.clock,
      random: this.random,
      maxAttempts: this.#maxAttempts,
      maxPauseMs: this.#requestTimeoutMs / 2,
      signal,
      onRetry: () => this.countRetry(),
    };
  }

  /** After `close`, nothing more is sent, not even by background work such as a doubling. */
  close(): void {
    this.#isClosed = true;
    this.#transport.close();
  }

  #address(input: object): object {
    return ADDRESSES.some((name) => name in input)
      ? input
      : { TableName: this.tableName, ...input };
  }

  #addressItem(item: TransactItem): object {
    return Object.fromEntries(
      Object.entries(item).map(([kind, write]) => [kind, { TableName: this.tableName, ...write }]),
    );
  }
}

function isOfStream(input: object): boolean {
  return "StreamArn" in input || "ShardIterator" in input;
}

/** The fields that say what a request is about; one without any of them is about the table. */
const ADDRESSES = [
  "TableName",
  "Statements",
  "TransactItems",
  "RequestItems",
  "StreamArn",
  "ShardIterator",
];

/** How many signals are made within one time-out. */
const SHARES = 32;

/** What a time-out is made of; tests pass their own. */
export interface TimeoutParts {
  readonly nowMs: () => number;
  readonly start: (ms: number) => Timeout;
}

/**
 * Time-outs for many short pieces of I/O. Those that begin within a 32nd of the time-out share one
 * signal and one timer: a signal for each costs 18 µs of CPU until it is collected, more than
 * signing a request. Each piece of work gets at least 31/32 of the time-out, and never more than
 * all of it.
 */
export class SharedTimeouts {
  readonly #ms: number;
  readonly #parts: TimeoutParts;
  #current: SharedTimeout | undefined;
  #nextAtMs = 0;

  constructor(ms: number, parts: TimeoutParts = { nowMs: monotonicMs, start: startTimeout }) {
    this.#ms = ms;
    this.#parts = parts;
  }

  /** A time-out for work that begins now; `end` it when the work has ended. */
  begin(): SharedTimeout {
    const nowMs = this.#parts.nowMs();
    if (this.#current === undefined || nowMs >= this.#nextAtMs) {
      this.#current = new SharedTimeout(this.#parts.start(this.#ms));
      this.#nextAtMs = nowMs + this.#ms / SHARES;
    }
    this.#current.begin();
    return this.#current;
  }
}

/**
 * One signal for all work that begins within a short time. It keeps the process alive while it has
 * work.
 */
class SharedTimeout {
  readonly signal: AbortSignal;
  readonly #timeout: Timeout;
  #working = 0;

  constructor(timeout: Timeout) {
    this.signal = timeout.signal;
    this.#timeout = timeout;
    // Node warns about the eleventh listener, which is not a leak here.
    setMaxListeners(0, timeout.signal);
    timeout.release();
  }

  begin(): void {
    if (this.#working === 0) this.#timeout.hold();
    this.#working += 1;
  }

  end(): void {
    this.#working -= 1;
    if (this.#working === 0) this.#timeout.release();
  }
}
