/*
 * The sharer of requests alone, before a table that a seed plays: writes come in bursts, requests
 * are answered in any order and in any way, and time passes. After every event:
 *
 *   - no request has two writes of one item, nor more than 25, nor fewer than 2 statements
 *   - no more than the bound of shared requests are under way, unless a write has waited long
 *   - no write waits while fewer than the bound are under way
 *   - without faults, writes are sent in the order in which they came
 *
 * and in the end every write has one outcome, which is what became of it: applied once; not
 * applied; or unknown, where the table really left it open.
 */
import { ItemReader } from "../../src/repository/dynamodb/table/item-reader.ts";
import { Connection } from "../../src/repository/dynamodb/table/connection.ts";
import type { ItemWrite } from "../../src/repository/dynamodb/table/update-expression.ts";
import { SharedRequests } from "../../src/repository/dynamodb/table/shared-requests.ts";
import { TableUnavailable } from "../../src/repository/dynamodb/table/table-errors.ts";
import type { DynamoTransport } from "../../src/repository/dynamodb/transport/transport.ts";
import type { Random } from "../../src/repository/system-clock.ts";
import { seededRandom } from "../../src/testing/fakes/seeded-random.ts";
import { createError } from "./scripted-table.ts";
import { CoverageCounts } from "./seeded/coverage-counts.ts";
import { between, pick } from "./seeded/random-choice.ts";
import { ProcessClock, SimulatedTime } from "./simulated-time.ts";
import {
  carriedOut,
  STATEMENT_FAULTS,
  type StatementFault,
  type StatementReply,
} from "./statement-faults.ts";
import { keyOfStatement, listStatements, type RequestStatement } from "./written-items.ts";

/** What becomes of a whole request. */
const REQUEST_FAULTS = ["lost request", "lost reply", "throttled", "reply in part"] as const;

const SITUATIONS = [
  "batch",
  "batch of 25",
  "lone write",
  "write that waited",
  "request beyond the bound, because writes have waited long",
  "write without a statement",
  "two writes of one item at once",
  "applied",
  "condition failed",
  "unknown",
  ...REQUEST_FAULTS,
  ...STATEMENT_FAULTS,
] as const;

/** How often each situation was met. */
export type SharingCoverage = CoverageCounts<(typeof SITUATIONS)[number]>;

/** A count that starts at zero. */
export function newSharingCoverage(): SharingCoverage {
  return new CoverageCounts(SITUATIONS);
}

const TABLE_NAME = "t";
const EVENTS = 60;
const MOST_STATEMENTS = 25;
/** No write goes beyond the bound before it has waited so long. */
const LEAST_WAIT_MS = 50;

interface SentWrite {
  readonly id: number;
  readonly item: string;
  readonly hasStatement: boolean;
  readonly cameMs: number;
  /** When it was last sent. */
  sentMs: number | undefined;
  isSent: boolean;
  applied: number;
  outcome: string | undefined;
}

interface HeldRequest {
  readonly operation: string;
  readonly input: object;
  readonly sentMs: number;
  readonly resolve: (output: object) => void;
  readonly reject: (error: Error) => void;
}

/** Plays one seed; throws when a promise is broken. */
export async function simulateSharing(seed: number, coverage: SharingCoverage): Promise<void> {
  const simulation = new Simulation(seed, coverage);
  for (let event = 0; event < EVENTS; event += 1) await simulation.step();
  await simulation.end();
}

class Simulation implements DynamoTransport {
  readonly #random: Random;
  readonly #coverage: SharingCoverage;
  readonly #time = new SimulatedTime(1_800_000_000_000);
  readonly #requests: SharedRequests;
  readonly #bound: number;
  /** Nothing fails, nothing is slow, and no item is written twice at once. */
  readonly #isCalm: boolean;
  readonly #mayBeDenied: boolean;
  readonly #writes: SentWrite[] = [];
  #held: HeldRequest[] = [];
  #lastSent = -1;
  /** What was wrong with a request; thrown at the sharer, it would be taken for the table's. */
  #failure: { readonly error: unknown } | undefined;

  constructor(seed: number, coverage: SharingCoverage) {
    this.#random = seededRandom(seed);
    this.#coverage = coverage;
    this.#bound = between(this.#random, 1, 4);
    this.#isCalm = this.#random() < 0.3;
    this.#mayBeDenied = this.#random() < 0.1;
    const connection = new Connection({
      transport: this,
      tableName: TABLE_NAME,
      clock: new ProcessClock(this.#time, 0),
      random: this.#random,
      requestTimeoutMs: 600_000,
      maxAttempts: 1,
    });
    this.#requests = new SharedRequests({
      connection,
      reader: new ItemReader(connection),
      isOn: true,
      maxRequests: this.#bound,
    });
  }

  call(operation: string, input: object): Promise<object> {
    // What a read shows is not the sharer's concern.
    if (operation === "BatchGetItem") return Promise.resolve({ Responses: { [TABLE_NAME]: [] } });
    const statements = listStatements(input);
    try {
      if (operation === "BatchExecuteStatement") this.#checkBatch(statements);
      else this.#coverage.count("lone write");
      for (const id of idsIn(operation, input)) this.#noteSent(this.#writes[id]!);
    } catch (error) {
      this.#failure ??= { error };
    }
    return new Promise((resolve, reject) => {
      this.#held.push({ operation, input, sentMs: this.#time.nowMs, resolve, reject });
    });
  }

  close(): void {}

  async step(): Promise<void> {
    const dice = this.#random();
    if (dice < 0.35) this.#arrive();
    else if (dice < 0.85 && this.#held.length > 0) this.#answer(pick(this.#random, this.#held));
    else if (!this.#isCalm) this.#time.advance(pick(this.#random, [1, 5, 20, 60, 300]));
    await settle();
    this.#check();
  }

  async end(): Promise<void> {
    for (let turn = 0; turn < 1000 && this.#writes.some(isOpen); turn += 1) {
      if (this.#held.length > 0) this.#answer(this.#held[0]!);
      else if (this.#time.isAnybodyAsleep) this.#time.advance(this.#time.untilFirstWakesMs());
      await settle();
      this.#check();
    }
    for (const write of this.#writes) this.#judge(write);
  }

  #arrive(): void {
    const items = Array.from(
      { length: between(this.#random, 1, 60) },
      (_, index) => `item-${index}`,
    );
    const taken = new Set(this.#writes.filter(isOpen).map(({ item }) => item));
    for (let count = between(this.#random, 1, items.length); count > 0; count -= 1) {
      const item = pick(this.#random, items);
      if (taken.has(item)) {
        if (this.#isCalm) continue;
        this.#coverage.count("two writes of one item at once");
      }
      taken.add(item);
      this.#send(item);
    }
  }

  #send(item: string): void {
    const hasStatement = this.#isCalm || this.#random() < 0.95;
    if (!hasStatement) this.#coverage.count("write without a statement");
    const id = this.#writes.length;
    const write: SentWrite = {
      id,
      item,
      hasStatement,
      cameMs: this.#time.nowMs,
      sentMs: undefined,
      isSent: false,
      applied: 0,
      outcome: undefined,
    };
    this.#writes.push(write);
    const conclude = (outcome: string): void => {
      if (write.outcome !== undefined) throw new Error(`${id} has two outcomes`);
      write.outcome = outcome;
    };
    const isRetry = !this.#isCalm && this.#random() < 0.05;
    this.#requests.send(itemWrite(write), { isRetry }).then(
      ({ applied }) => conclude(applied ? "applied" : "condition failed"),
      (error: unknown) =>
        conclude(error instanceof TableUnavailable && error.ambiguous ? "unknown" : "not applied"),
    );
  }

  #checkBatch(statements: readonly RequestStatement[]): void {
    this.#coverage.count("batch");
    if (statements.length === MOST_STATEMENTS) this.#coverage.count("batch of 25");
    if (statements.length < 2 || statements.length > MOST_STATEMENTS)
      throw new Error(`${statements.length} statements`);
    const items = statements.map((statement) => keyOfStatement(statement).PK.S);
    if (new Set(items).size < items.length) throw new Error("two writes of one item in a request");
    const underWay = this.#held.filter(({ operation }) => operation === "BatchExecuteStatement");
    if (underWay.length < this.#bound) return;
    const latestMs = this.#time.nowMs - LEAST_WAIT_MS;
    const writes = statements.map((statement) => this.#writes[getId(statement)]!);
    // One without a statement had its place in the request, and went alone just now.
    const alone = this.#writes.filter(
      ({ hasStatement, sentMs }) => !hasStatement && sentMs === this.#time.nowMs,
    );
    if ([...writes, ...alone].every(({ cameMs }) => cameMs > latestMs))
      throw new Error(`more than ${this.#bound} under way`);
    this.#coverage.count("request beyond the bound, because writes have waited long");
  }

  #noteSent(write: SentWrite): void {
    if (this.#isCalm && write.id !== this.#lastSent + 1)
      throw new Error(`${write.id} was sent after ${this.#lastSent}`);
    this.#lastSent = write.id;
    write.sentMs = this.#time.nowMs;
    write.isSent = true;
  }

  /** What a test of the sharer sees after each event. */
  #check(): void {
    if (this.#failure !== undefined) throw this.#failure.error;
    const waiting = this.#writes.filter(({ isSent }) => !isSent);
    if (waiting.length > 0) this.#coverage.count("write that waited");
    if (waiting.length > 0 && this.#held.length < this.#bound)
      throw new Error(`${waiting.length} wait while ${this.#held.length} are under way`);
    if (waiting.length > 0 && !this.#time.isAnybodyAsleep)
      throw new Error(`${waiting.length} wait for requests, however slow these become`);
  }

  #judge({ id, outcome, applied }: SentWrite): void {
    const possible = { applied: [1], unknown: [0, 1] }[outcome ?? ""] ?? [0];
    if (outcome === undefined || !possible.includes(applied))
      throw new Error(`${id} reported ${outcome}, and was applied ${applied} times`);
    if (outcome !== "not applied")
      this.#coverage.count(outcome as "applied" | "condition failed" | "unknown");
  }

  #answer(request: HeldRequest): void {
    this.#held = this.#held.filter((other) => other !== request);
    const isBatch = request.operation === "BatchExecuteStatement";
    const fault =
      this.#isCalm || this.#random() < 0.6 ? undefined : pick(this.#random, REQUEST_FAULTS);
    if (fault !== undefined && (isBatch || fault !== "reply in part")) this.#coverage.count(fault);
    if (fault === "lost request") return request.reject(LOST);
    if (fault === "throttled") return request.reject(createError("ThrottlingException"));
    if (!isBatch) return this.#answerLone(request, fault === "lost reply");
    const Responses = this.#carryOut(listStatements(request.input));
    if (fault === "lost reply") return request.reject(LOST);
    const missing = between(this.#random, 0, Responses.length - 1);
    request.resolve({
      Responses: fault === "reply in part" ? Responses.toSpliced(missing, 1) : Responses,
    });
  }

  #answerLone({ operation, input, resolve, reject }: HeldRequest, isLost: boolean): void {
    const [id] = idsIn(operation, input);
    const isApplied = this.#apply(id!);
    if (isLost) reject(LOST);
    else if (isApplied) resolve({ Attributes: {} });
    else reject(createError("ConditionalCheckFailedException"));
  }

  #carryOut(all: readonly RequestStatement[]): readonly StatementReply[] {
    const possible = STATEMENT_FAULTS.filter((fault) => fault !== "denied" || this.#mayBeDenied);
    const { statements, replies } = carriedOut(all, (): StatementFault | undefined => {
      if (this.#isCalm || this.#random() < 0.8) return undefined;
      const fault = pick(this.#random, possible);
      this.#coverage.count(fault);
      return fault;
    });
    return replies(
      statements.map((statement) =>
        this.#apply(getId(statement))
          ? { Item: {} }
          : {
              Error: { Code: "ConditionalCheckFailed", Message: "The conditional request failed" },
            },
      ),
    );
  }

  /** Whether its condition holds. */
  #apply(id: number): boolean {
    const holds = this.#random() < 0.9;
    if (holds) this.#writes[id]!.applied += 1;
    return holds;
  }
}

const LOST = createError("Error", { code: "ECONNRESET" });

function itemWrite({ id, item, hasStatement }: SentWrite): ItemWrite {
  const primary = { PK: item, SK: "s" };
  const marshalled = { PK: { S: item }, SK: { S: "s" } };
  return {
    operation: "UpdateItem",
    key: { primary, marshalled, text: item },
    input: (TableName) => ({
      TableName,
      Key: marshalled,
      ExpressionAttributeValues: { ":id": { N: String(id) } },
    }),
    statement: () =>
      hasStatement
        ? {
            Statement: 'UPDATE "t" SET "id"=? WHERE "PK"=? AND "SK"=? RETURNING ALL NEW *',
            Parameters: [{ N: String(id) }, marshalled.PK, marshalled.SK],
            ReturnValuesOnConditionCheckFailure: "ALL_OLD",
          }
        : undefined,
  };
}

function idsIn(operation: string, input: object): readonly number[] {
  if (operation === "BatchExecuteStatement") return listStatements(input).map(getId);
  const { ExpressionAttributeValues: values } = input as {
    readonly ExpressionAttributeValues: { readonly ":id": { readonly N: string } };
  };
  return [Number(values[":id"].N)];
}

function getId({ Parameters }: RequestStatement): number {
  return Number((Parameters![0] as { readonly N: string }).N);
}

function isOpen({ outcome }: SentWrite): boolean {
  return outcome === undefined;
}

/** Lets everything run that does not wait for the table or for time. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 2; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}
