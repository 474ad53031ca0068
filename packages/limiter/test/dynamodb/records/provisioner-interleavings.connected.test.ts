import { beforeAll, expect, it } from "vitest";
import type { ProvisionerState } from "zae-limiter";
import type { DynamoTransport } from "zae-limiter/dynamodb";
import { seededRandom } from "zae-limiter/testing";
import { DynamoProvisioner } from "../../../src/repository/dynamodb/provisioner.ts";
import { queryAll } from "../../../src/repository/dynamodb/table/batch.ts";
import { Connection } from "../../../src/repository/dynamodb/table/connection.ts";
import { ItemReader } from "../../../src/repository/dynamodb/table/item-reader.ts";
import { connectToNewTable, type ConnectedTable } from "../../support/connect.ts";
import { describeWithEngine } from "../../support/engine.ts";
import { CoverageCounts } from "../../support/seeded/coverage-counts.ts";
import { between, pick } from "../../support/seeded/random-choice.ts";
import { eachOf, seedsFromEnvironment } from "../../support/seeded/seeds.ts";
import { SleeplessClock } from "../../support/sleepless-clock.ts";

/*
 * Writers and readers of one state. Their requests pass one at a time, in an order that the seed
 * draws, and some do not pass:
 *
 *   waiting ──▶ done ──▶ answered
 *      │          └────▶ answer lost: the client tries again
 *      ├──▶ throttled: the client tries again
 *      └──▶ its client dies, before or after the request is done
 */

const SEEDS = seedsFromEnvironment({ usual: 15, thorough: 40 });

/** With fewer seeds, some situations may not occur. */
const ENOUGH_SEEDS = 15;

/** So small that a few names need several parts. */
const MAX_BYTES = { head: 150, part: 60 };

const SITUATIONS = [
  "a put wins",
  "a put is too late",
  "a reader has to read again",
  "an answer is lost",
  "a write is throttled",
  "a writer dies",
  "a dead writer leaves parts",
] as const;

type Situation = (typeof SITUATIONS)[number];

describeWithEngine("puts and reads of declared limits at once", (engine) => {
  let table: ConnectedTable;
  const coverage = new CoverageCounts<Situation>(SITUATIONS);
  beforeAll(async () => {
    table = await connectToNewTable(engine().endpointUrl, { transport: "lean" });
  });

  it(`nobody reads a mixture, and no part is left, over ${SEEDS.count} seeds`, async () => {
    for (const seed of eachOf(SEEDS)) await new Run(table, seed, coverage).play();
    console.log(`the state of declared limits: ${SEEDS.count} seeds\n${coverage.toString()}`);
    if (SEEDS.count >= ENOUGH_SEEDS) expect(coverage.missing).toEqual([]);
  });
});

/** One seed. */
class Run {
  readonly #table: ConnectedTable;
  readonly #seed: number;
  readonly #coverage: CoverageCounts<Situation>;
  readonly #random: () => number;
  readonly #namespaceId: string;
  readonly #calls: WaitingCall[] = [];
  /** Every state that somebody tried to put, by its hash. */
  readonly #attempted = new Map<string, ProvisionerState>();
  /** The hash of each revision that somebody has seen. */
  readonly #seen = new Map<number, string>();

  /** Whose request came last. */
  #last: Client | undefined;

  constructor(table: ConnectedTable, seed: number, coverage: CoverageCounts<Situation>) {
    this.#table = table;
    this.#seed = seed;
    this.#coverage = coverage;
    this.#random = seededRandom(seed);
    this.#namespaceId = `seed-${seed}`;
  }

  async play(): Promise<void> {
    const running = new Set<Client>();
    const failures: unknown[] = [];
    const start = (client: Client, work: (client: Client) => Promise<void>): void => {
      running.add(client);
      work(client)
        .catch((error: unknown) => {
          if (!client.isDead) failures.push(error);
        })
        .finally(() => running.delete(client));
    };
    for (let index = 1; index <= 3; index += 1) start(new Client(`w${index}`, true), this.#write);
    for (let index = 1; index <= 2; index += 1) start(new Client(`r${index}`, false), this.#read);
    while (running.size > 0) {
      // Every client has one request at a time, or has ended.
      if (this.#calls.length < running.size) await new Promise((resolve) => setImmediate(resolve));
      else await this.#decide();
    }
    expect(failures, `seed ${this.#seed}`).toEqual([]);
    await this.#end();
  }

  readonly #write = async (client: Client): Promise<void> => {
    const provisioner = this.#open(client);
    for (let put = 1; put <= 3; put += 1) {
      const { revision } = this.#check(await provisioner.get());
      const hash = `${client.name}-${put}`;
      const count = pick(this.#random, [0, 8, 20]);
      const state = stateOf(hash, count, revision + 1);
      this.#attempted.set(hash, state);
      const isStored = await provisioner.put(state, revision);
      this.#coverage.count(isStored ? "a put wins" : "a put is too late");
      if (isStored) this.#check(state);
    }
  };

  readonly #read = async (client: Client): Promise<void> => {
    const provisioner = this.#open(client);
    for (let last = 0, read = 1; read <= 6; read += 1) {
      client.headReads = 0;
      const { revision } = this.#check(await provisioner.get());
      expect(revision).toBeGreaterThanOrEqual(last);
      if (client.headReads > 1) this.#coverage.count("a reader has to read again");
      last = revision;
    }
  };

  /** A state is, as a whole, one that somebody put, and the only one of its revision. */
  #check(state: ProvisionerState | undefined): ProvisionerState {
    if (state === undefined) return stateOf("", 0, 0);
    const hash = state.appliedHash!;
    expect(state, `seed ${this.#seed}`).toEqual(this.#attempted.get(hash));
    expect(this.#seen.get(state.revision) ?? hash, `seed ${this.#seed}`).toBe(hash);
    this.#seen.set(state.revision, hash);
    return state;
  }

  /** What becomes of one of the waiting requests. */
  async #decide(): Promise<void> {
    // Often the same client goes on, so that others fall far behind.
    const same =
      this.#random() < 0.6 ? this.#calls.findIndex((each) => each.client === this.#last) : -1;
    const index = same === -1 ? between(this.#random, 0, this.#calls.length - 1) : same;
    const [call] = this.#calls.splice(index, 1);
    const { client, operation } = call!;
    this.#last = client;
    const fate = this.#random();
    if (client.isWriter && fate < (operation === "TransactWriteItems" ? 0.16 : 0.02)) {
      this.#coverage.count("a writer dies");
      const isDone = this.#random() < 0.5;
      if (isDone) await call!.perform().catch(() => {});
      else if (operation === "TransactWriteItems" && client.hasWrittenParts)
        this.#coverage.count("a dead writer leaves parts");
      client.isDead = true;
      return call!.reject(GONE);
    }
    if (fate < 0.1) {
      this.#coverage.count("an answer is lost");
      await call!.perform().catch(() => {});
      return call!.reject(Object.assign(new Error("socket hang up"), { code: "ECONNRESET" }));
    }
    if (fate < 0.16 && (operation === "PutItem" || operation === "DeleteItem")) {
      this.#coverage.count("a write is throttled");
      return call!.reject(THROTTLED);
    }
    if (call!.isHead) client.headReads += 1;
    await call!.perform().then(call!.resolve, call!.reject);
  }

  /** Whatever happened, the state is one that was put, and the next put leaves nothing else. */
  async #end(): Promise<void> {
    const { connection } = this.#table;
    const provisioner = new DynamoProvisioner(
      connection,
      this.#namespaceId,
      new ItemReader(connection),
      MAX_BYTES,
    );
    const { revision } = this.#check(await provisioner.get());
    expect(await provisioner.put(stateOf("end", 0, revision + 1), revision)).toBe(true);
    const left: unknown[] = [];
    const query = {
      partition: `${this.#namespaceId}/SYSTEM#`,
      range: { beginsWith: "#PROVISIONER" },
    };
    for await (const { SK } of queryAll(connection, query)) left.push(SK);
    expect(left, `seed ${this.#seed}`).toEqual([{ S: "#PROVISIONER" }]);
  }

  #open(client: Client): DynamoProvisioner {
    const { transport, tableName } = this.#table;
    const held: DynamoTransport = {
      call: (operation, input, options) =>
        new Promise((resolve, reject) => {
          if (client.isDead) return reject(GONE);
          if (operation === "PutItem") client.hasWrittenParts = true;
          if (operation === "Query") client.hasWrittenParts = false;
          const perform = (): Promise<object> => transport.call(operation, input, options);
          const isHead = JSON.stringify(input).includes('"#PROVISIONER"');
          this.#calls.push({ client, operation, isHead, perform, resolve, reject });
        }),
      close: () => {},
    };
    const connection = new Connection({
      transport: held,
      tableName,
      clock: new SleeplessClock(),
      random: this.#random,
      requestTimeoutMs: 10_000,
      maxAttempts: 20,
    });
    return new DynamoProvisioner(
      connection,
      this.#namespaceId,
      new ItemReader(connection),
      MAX_BYTES,
    );
  }
}

/** A process that puts or reads. */
class Client {
  readonly name: string;
  readonly isWriter: boolean;
  isDead = false;
  /** Since its last put was stored. */
  hasWrittenParts = false;
  headReads = 0;

  constructor(name: string, isWriter: boolean) {
    this.name = name;
    this.isWriter = isWriter;
  }
}

interface WaitingCall {
  readonly client: Client;
  readonly operation: string;
  /** Whether it is about the head. */
  readonly isHead: boolean;
  readonly perform: () => Promise<object>;
  readonly resolve: (output: object) => void;
  readonly reject: (error: unknown) => void;
}

const GONE = Object.assign(new Error("This process is gone"), { name: "AccessDeniedException" });
const THROTTLED = Object.assign(new Error("Too fast"), {
  name: "ProvisionedThroughputExceededException",
});

/** A state that says in many places who put it. */
function stateOf(hash: string, count: number, revision: number): ProvisionerState {
  return {
    managedSystem: false,
    managedResources: Array.from({ length: count }, () => hash),
    managedEntities: {},
    lastApplied: undefined,
    appliedHash: hash,
    revision,
  };
}
