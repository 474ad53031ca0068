/*
 * Writes of different items that share a request (ADR 010).
 *
 *   send ──▶ waiting ──▶ when all microtasks have run, or when a request returns:
 *                          one alone            UpdateItem
 *                          several, at most 25  BatchExecuteStatement; each of its statements was
 *                            applied, or its condition failed  ──▶ the reply
 *                            throttled, invalid or denied      ──▶ UpdateItem, alone
 *                            in conflict, or unknown           ──▶ an error; the caller tries again
 *                          the replies are in another order: each is unknown, and sharing ends
 *
 * Nothing waits for a timer. A write waits while a few requests are under way, so that the requests
 * of a busy process become larger instead of more; but not for requests that are slow. Retries and
 * creations go alone, and at once. So do the writes of an item for two seconds after one failed.
 */
import { BoundedMap } from "../../../core/bounded-map.ts";
import { InfrastructureError } from "../../../core/errors.ts";
import { emitWarning } from "../../warning.ts";
import { readError } from "../transport/failure.ts";
import type { AttributeMap } from "../transport/attribute-values.ts";
import type { Conditional, Connection } from "./connection.ts";
import type { ItemReader } from "./item-reader.ts";
import {
  isAbout,
  statementOutcome,
  type KnownOutcome,
  type StatementOutcome,
  type StatementReply,
} from "./statement-outcome.ts";
import { TableUnavailable } from "./table-errors.ts";
import type { ItemWrite, Statement } from "./update-expression.ts";

/** What a write returns. */
export interface WriteOutput {
  readonly Attributes?: AttributeMap;
}

type Reply = Conditional<WriteOutput>;

/** DynamoDB's own limit on one request. */
const MAX_STATEMENTS = 25;

/** The most requests under way while writes wait; chosen by measuring (ADR 010). */
const MAX_REQUESTS = 4;

/**
 * How long a write waits for requests of others before it goes without them: they may be slow, or
 * never return. One that comes during this time waits at most twice as long.
 */
const MAX_WAIT_MS = 50;

/** How long the writes of an item go alone after one of them has failed. */
const ALONE_MS = 2000;

/** The most items whose writes go alone; the one that failed first is forgotten. */
const MAX_ALONE = 1000;

/** How many invalid statements, before the first valid one, end the sharing. */
const MAX_INVALID = 50;

/** How DynamoDB says that a statement adds to an attribute that does not exist. */
const MISSING_ATTRIBUTE = "attribute that does not exist";

/** A sum with an attribute whose name must be quoted, such as one with a dash. */
const QUOTED_SUM = '"+?';

/** A write that waits for a request. */
interface Waiting {
  readonly write: ItemWrite;
  readonly resolve: (reply: Reply | Promise<Reply>) => void;
  readonly reject: (error: unknown) => void;
}

/** Sends the conditional writes of one table. */
export class SharedRequests {
  readonly #connection: Connection;
  readonly #reader: ItemReader;
  readonly #maxRequests: number;
  /** When the last write of an item failed. */
  readonly #failedAtMs = new BoundedMap<string, number>(MAX_ALONE);
  #isOn: boolean;
  /** Whether the table has carried out a statement, or refused one by its condition. */
  #isUnderstood = false;
  /** Statements that were invalid before. */
  #invalid = 0;
  /** Whether the table is known not to read sums with quoted names, as dynoxide does not. */
  #refusesQuotedSums = false;
  readonly #waiting: Waiting[] = [];
  #isScheduled = false;
  #isWatching = false;
  /** Requests that are under way, but for those that went at once. */
  #underWay = 0;

  constructor(options: {
    readonly connection: Connection;
    readonly reader: ItemReader;
    readonly isOn: boolean;
    /** @default 4 */
    readonly maxRequests?: number | undefined;
  }) {
    this.#connection = options.connection;
    this.#reader = options.reader;
    this.#isOn = options.isOn;
    this.#maxRequests = options.maxRequests ?? MAX_REQUESTS;
  }

  /** One attempt at a write; a condition that does not hold is returned as a value. */
  send(write: ItemWrite, { isRetry }: { readonly isRetry: boolean }): Promise<Reply> {
    if (!this.#isOn || isRetry || write.operation !== "UpdateItem") return this.#alone(write);
    if (this.#hasJustFailed(write.key.text)) return this.#aloneAfterFailure(write);
    return new Promise((resolve, reject) => {
      this.#waiting.push({ write, resolve, reject });
      this.#schedule();
    });
  }

  /**
   * Sends what waits as soon as everything has come that is ready now: a tick that is queued by a
   * microtask comes after all microtasks. An immediate would also wait for other sockets, and cost
   * a lone write 10 µs.
   */
  #schedule(): void {
    if (this.#isScheduled || this.#waiting.length === 0) return;
    this.#isScheduled = true;
    queueMicrotask(() => process.nextTick(() => this.#sendWaiting()));
  }

  #sendWaiting(): void {
    this.#isScheduled = false;
    while (this.#waiting.length > 0 && this.#underWay < this.#maxRequests)
      this.#request(this.#next());
    if (this.#waiting.length > 0) void this.#watch();
  }

  /** The writes of the next request, which are of different items; the rest waits on. */
  #next(): readonly Waiting[] {
    if (this.#waiting.length === 1) return this.#waiting.splice(0);
    const items = new Set<string>();
    const [chosen, others]: [Waiting[], Waiting[]] = [[], []];
    let seen = 0;
    while (seen < this.#waiting.length && chosen.length < MAX_STATEMENTS) {
      const waiting = this.#waiting[seen]!;
      const { text } = waiting.write.key;
      (items.has(text) ? others : chosen).push(waiting);
      items.add(text);
      seen += 1;
    }
    this.#waiting.splice(0, seen, ...others);
    return chosen;
  }

  /** Sends what has waited too long, so that nothing waits for requests that do not return. */
  async #watch(): Promise<void> {
    if (this.#isWatching) return;
    this.#isWatching = true;
    const last = this.#waiting.at(-1)!;
    await this.#connection.clock.sleep(MAX_WAIT_MS);
    this.#isWatching = false;
    while (this.#waiting.includes(last)) this.#request(this.#next());
    if (this.#waiting.length > 0) void this.#watch();
  }

  /** No async functions here: two took 1500 of the 20,000 bytes that a lone write allocates. */
  #request(writes: readonly Waiting[]): void {
    this.#underWay += 1;
    const onEnd = (): void => {
      this.#underWay -= 1;
      this.#schedule();
    };
    const onError = (error: unknown): void => {
      for (const { reject } of writes) reject(error);
      onEnd();
    };
    try {
      const sending = writes.length === 1 ? this.#settleAlone(writes[0]!) : this.#share(writes);
      sending.then(onEnd, onError);
    } catch (error) {
      onError(error);
    }
  }

  #settleAlone({ write, resolve, reject }: Waiting): Promise<void> {
    return this.#alone(write).then(resolve, (error: unknown) => {
      if (error instanceof TableUnavailable && error.throttled && !error.tableWide)
        this.#noteFailure(write.key.text);
      reject(error);
    });
  }

  async #share(writes: readonly Waiting[]): Promise<void> {
    const [stated, statements]: [Waiting[], Statement[]] = [[], []];
    for (const waiting of writes) {
      const statement = this.#isOn && waiting.write.statement(this.#connection.tableName);
      if (!statement || (this.#refusesQuotedSums && hasQuotedSum(statement)))
        waiting.resolve(this.#alone(waiting.write));
      else {
        stated.push(waiting);
        statements.push(statement);
      }
    }
    if (stated.length < 2) return stated[0] && this.#settleAlone(stated[0]);
    try {
      const output = await this.#connection.call<BatchOutput>("BatchExecuteStatement", {
        Statements: statements,
      });
      const outcomes = this.#outcomes(statements, output?.Responses);
      stated.forEach((waiting, index) =>
        this.#conclude(waiting, statements[index]!, outcomes[index]!),
      );
    } catch (error) {
      this.#fail(stated, error);
    }
  }

  /** Concludes the writes of a request that failed as a whole. */
  #fail(writes: readonly Waiting[], error: unknown): void {
    const failure = wholeFailure(error);
    const { name, message } = readError((error as Error).cause);
    const why = `${name}: ${message}`;
    if (failure === "not understood") this.#turnOff(why);
    for (const { write, resolve, reject } of writes)
      if (failure === "not allowed") resolve(this.#again(write, { deniedBy: why }));
      else reject(failure === "not understood" ? this.#ambiguous(error) : asTableWide(error));
  }

  /**
   * What became of each statement. If it is unclear which one a reply is about, all are in doubt:
   * a statement that shows no item could be any of them.
   */
  #outcomes(
    statements: readonly Statement[],
    replies: BatchOutput["Responses"],
  ): readonly StatementOutcome[] {
    const { tableName } = this.#connection;
    // A reply to fewer statements does not show which of them it is about.
    const whole = replies?.length === statements.length ? replies : undefined;
    const outcomes = statements.map((_, index) => statementOutcome(whole?.[index], tableName));
    if (statements.every((statement, index) => isAbout(statement, outcomes[index]!)))
      return outcomes;
    this.#turnOff("its replies are not in the order of the statements");
    return statements.map(() => statementOutcome(undefined, tableName));
  }

  #conclude(
    { write, resolve, reject }: Waiting,
    statement: Statement,
    outcome: StatementOutcome,
  ): void {
    if ("item" in outcome) {
      this.#isUnderstood = true;
      return resolve(this.#toReply(write, outcome));
    }
    this.#noteFailure(write.key.text);
    if (outcome.kind === "failed") return reject(outcome.error);
    const { kind, why } = outcome;
    // Alone, the write makes the attribute that a statement found missing.
    const isMissing = why.includes(MISSING_ATTRIBUTE);
    if (isMissing) this.#isUnderstood = true;
    if (kind === "invalid" && !this.#isUnderstood && ++this.#invalid === MAX_INVALID)
      this.#turnOff(why);
    resolve(
      this.#again(write, {
        deniedBy: kind === "denied" ? why : undefined,
        isMisread: kind === "invalid" && !isMissing && hasQuotedSum(statement),
      }),
    );
  }

  /** Reads the item whose condition failed, where the reply does not show it. */
  #toReply(write: ItemWrite, { kind, item }: KnownOutcome): Reply | Promise<Reply> {
    if (kind === "applied") return { applied: true, output: { Attributes: item } };
    if (item !== undefined) return { applied: false, item };
    return this.#reader.get(write.key.primary).then(
      (read) => ({ applied: false, item: read }),
      (error: unknown) => {
        // What the read suffered says nothing about the write: it was not applied.
        throw error instanceof TableUnavailable ? error.withFacts(NO_WRITE_FACTS) : error;
      },
    );
  }

  #alone(write: ItemWrite): Promise<Reply> {
    const input = write.input(this.#connection.tableName);
    return this.#connection.conditional<WriteOutput>(write.operation, input);
  }

  #aloneAfterFailure(write: ItemWrite): Promise<Reply> {
    return this.#alone(write).catch((error: unknown) => {
      this.#noteFailure(write.key.text);
      throw error;
    });
  }

  #noteFailure(item: string): void {
    this.#failedAtMs.set(item, this.#connection.clock.now());
  }

  #hasJustFailed(item: string): boolean {
    const failedAtMs = this.#failedAtMs.get(item);
    if (failedAtMs === undefined) return false;
    // The clock may be set back.
    const sinceMs = this.#connection.clock.now() - failedAtMs;
    if (sinceMs >= 0 && sinceMs < ALONE_MS) return true;
    this.#failedAtMs.delete(item);
    return false;
  }

  /**
   * Sends a write alone that was not applied in a shared request. If it was denied there and is
   * allowed alone, sharing is what is denied; otherwise the item may be another tenant's. Likewise,
   * if it was invalid there and is valid alone, its statement is what the table does not read.
   */
  async #again(
    write: ItemWrite,
    {
      deniedBy,
      isMisread = false,
    }: { readonly deniedBy: string | undefined; readonly isMisread?: boolean },
  ): Promise<Reply> {
    this.#connection.countRetry();
    const reply = await this.#alone(write);
    if (deniedBy !== undefined) this.#turnOff(deniedBy, "Allow dynamodb:PartiQLUpdate, or open");
    if (isMisread) this.#refusesQuotedSums = true;
    return reply;
  }

  /** The error of a write that an engine may have carried out although it refused the request. */
  #ambiguous(error: unknown): TableUnavailable {
    const { tableName } = this.#connection;
    return new TableUnavailable(`Table ${tableName} refused a shared request. Try again.`, {
      stackName: tableName,
      ambiguous: true,
      cause: error,
    });
  }

  #turnOff(why: string, advice = "Open"): void {
    if (!this.#isOn) return;
    this.#isOn = false;
    emitWarning(
      `Calls on different buckets cannot share requests to table ${this.#connection.tableName} ` +
        `(${why}). Everything works, with a request for each write. ` +
        `${advice} the repository with shareRequests: false.`,
      { code: "WARN_LIMITER_REQUESTS_NOT_SHARED" },
    );
  }
}

function hasQuotedSum({ Statement: text }: Statement): boolean {
  return text.includes(QUOTED_SUM);
}

interface BatchOutput {
  readonly Responses?: readonly (StatementReply | null)[] | null;
}

/** A write that was not applied, and not throttled. */
const NO_WRITE_FACTS = {
  ambiguous: false,
  throttled: false,
  tableWide: false,
  keysThrottled: false,
} as const;

/** No bucket is hot because a request of 25 was throttled as a whole. */
function asTableWide(error: unknown): unknown {
  return error instanceof TableUnavailable && error.throttled
    ? error.withFacts({ tableWide: true })
    : error;
}

/**
 * What the error of a whole request says about sharing. Nothing was applied by one that is not
 * allowed or not known. One that is not understood may have been applied in part: DynamoDB Local
 * does so, and so may a proxy.
 */
function wholeFailure(error: unknown): "not allowed" | "not understood" | "other" {
  if (!(error instanceof InfrastructureError)) return "other";
  const { name, status } = readError(error.cause);
  if (error.code === "ERR_LIMITER_PERMISSION_DENIED" || name === "UnknownOperationException")
    return "not allowed";
  const isNotUnderstood = error.code === "ERR_LIMITER_STORE_REJECTED" || status === NOT_IMPLEMENTED;
  return isNotUnderstood ? "not understood" : "other";
}

const NOT_IMPLEMENTED = 501;
