import { Limit, RateLimiter, type Repository } from "zae-limiter";
import { simpleEstimator } from "zae-limiter/llm";
import { MemoryRepository } from "zae-limiter/memory";
import { SqliteRepository } from "zae-limiter/sqlite";
import { faultyRepository, type Fault } from "zae-limiter/testing";
import type { AnswerReader } from "../../../src/llm/answers/answer-reader.ts";
import { Meter } from "../../../src/llm/meter.ts";
import type { MeteredCall } from "../../../src/llm/metered-call.ts";
import type { MeteredOptions } from "../../../src/llm/options.ts";
import type { MeteredRecord } from "../../../src/llm/tokens/metered-record.ts";
import { pausedRepository } from "../../support/paused-repository.ts";
import { CALL } from "../metered-setting.ts";
import { closeLater, temporaryFile } from "../../support/temporary-file.ts";
import { WatchedClock } from "../../support/watched-clock.ts";

export type Backend = "memory" | "sqlite";

export const BACKENDS: readonly Backend[] = ["memory", "sqlite"];

export const IDLE_MS = 1000;

type Options = Partial<MeteredOptions<undefined>> & {
  /** The capacity of the limit of tokens. It hardly refills during a test. */
  readonly budget?: number;
  readonly limits?: readonly Limit[];
};

/** A real limiter, and calls whose answers stream. */
export class Setting {
  readonly clock: WatchedClock;
  readonly records: MeteredRecord[] = [];
  /** Faults of the operations of the store, by name. */
  readonly faults = new Map<string, Fault>();
  /** Operations of the store wait for these. */
  readonly gates = new Map<string, Promise<void>>();
  /** The operations of the store so far. */
  readonly operations: string[] = [];
  readonly repository: Repository;
  readonly limiter: RateLimiter;
  readonly #meter: Meter<undefined>;

  private constructor(clock: WatchedClock, inner: Repository, options: Options) {
    this.clock = clock;
    this.repository = inner;
    const faulty = faultyRepository(inner, (operation) => {
      this.operations.push(operation);
      return this.faults.get(operation);
    });
    this.limiter = new RateLimiter({
      repository: pausedRepository(faulty, (operation) => this.gates.get(operation)),
    });
    const { budget: _, limits: __, ...metered } = options;
    this.#meter = new Meter<undefined>(
      {
        limiter: this.limiter,
        entity: "key-1",
        metering: { rpm: { requests: 1 }, tpm: { input: 1, output: 1 } },
        estimator: simpleEstimator({ output: 200 }),
        idleMs: IDLE_MS,
        onSettled: (record) => this.records.push(record),
        ...metered,
      },
      "the test",
    );
  }

  /** Each call takes 100 tokens for its input and reserves 200 for its answer. */
  static async create(backend: Backend, options: Options = {}): Promise<Setting> {
    const { budget = 1000 } = options;
    const clock = new WatchedClock();
    const repository =
      backend === "memory"
        ? new MemoryRepository({ clock })
        : closeLater(await SqliteRepository.open(temporaryFile(), { clock }));
    await repository.setSystemDefaults(
      options.limits ?? [Limit.perDay("rpm", 1000), Limit.perDay("tpm", budget)],
    );
    return new Setting(clock, repository, options);
  }

  begin(): Promise<MeteredCall> {
    return this.#meter.begin({ ...CALL, stream: true }, undefined);
  }

  /** A call whose answer is a stream: the stream, watched. */
  async watch<Chunk extends Uint8Array>(
    stream: ReadableStream<Chunk>,
    signal?: AbortSignal,
    answer: AnswerReader<Chunk> = new TextReader(),
  ): Promise<ReadableStream<Chunk>> {
    return (await this.begin()).watch(stream, answer, signal);
  }

  /** The balance of a limit. */
  async left(name = "tpm"): Promise<number | undefined> {
    return (await this.limiter.available("key-1", "gpt-5"))[name];
  }

  /** The tokens that the store counted as used. */
  async used(name = "tpm"): Promise<number | undefined> {
    const { total } = await this.repository.getUsageSummary({ entityId: "key-1" });
    return total[name];
  }

  /** How calls ended, and their tokens of output. */
  get ends(): readonly (readonly [string, number])[] {
    return this.records.map(({ end, usage }) => [end, usage.output]);
  }

  /** The writes that ended leases. */
  get settlements(): readonly string[] {
    return this.operations.filter((name) => name === "settle" || name === "giveBack");
  }
}

const DOT = ".".charCodeAt(0);
const HASH = "#".charCodeAt(0);

/**
 * A minimal protocol: every byte is text. A dot completes the answer, and a chunk that begins with
 * a hash is withheld. Neither sign is text.
 */
export class TextReader implements AnswerReader<Uint8Array> {
  outputBytes = 0;
  isComplete = false;
  readonly reported = undefined;
  readonly isReportFinal = false;
  readonly hasUnreadableUsage = false;

  read<Chunk extends Uint8Array>(chunk: Chunk): Chunk | undefined {
    const isLast = chunk.includes(DOT);
    const isWithheld = chunk[0] === HASH;
    this.outputBytes += chunk.length - Number(isLast) - Number(isWithheld);
    if (isLast) this.isComplete = true;
    return isWithheld ? undefined : chunk;
  }

  end(): undefined {
    return undefined;
  }
}

/** Builds a chunk of so many tokens, with a sign at its end. */
export function tokens(count: number, sign = ""): Uint8Array<ArrayBuffer> {
  return bytes("word".repeat(count) + sign);
}

export function bytes(text: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(text);
}

export function toText(chunks: readonly Uint8Array[]): string {
  return Buffer.concat(chunks).toString();
}

/** A stream whose chunks a test sends. */
export class HeldStream<Chunk = Uint8Array<ArrayBuffer>> {
  /** How often a chunk was asked for. */
  pulls = 0;
  /** The reasons with which the stream was cancelled. */
  readonly cancels: unknown[] = [];
  #controller!: ReadableStreamDefaultController<Chunk>;
  readonly readable = new ReadableStream<Chunk>(
    {
      start: (controller) => void (this.#controller = controller),
      pull: () => void (this.pulls += 1),
      cancel: (reason) => void this.cancels.push(reason),
    },
    { highWaterMark: 0 },
  );

  send(...chunks: readonly Chunk[]): void {
    for (const chunk of chunks) this.#controller.enqueue(chunk);
  }

  end(): void {
    this.#controller.close();
  }

  fail(error: unknown): void {
    this.#controller.error(error);
  }
}

/** Waits some turns of the event loop, in which all pending work ends. */
export async function nextTurns(turns = 5): Promise<void> {
  for (let turn = 0; turn < turns; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

/** Returns the current state of a promise. */
export async function readState(promise: Promise<unknown>): Promise<string> {
  let state = "pending";
  promise.then(
    () => (state = "resolved"),
    () => (state = "rejected"),
  );
  await nextTurns();
  return state;
}
