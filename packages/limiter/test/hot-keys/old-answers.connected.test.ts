import { Limit } from "zae-limiter";
import { ManualClock } from "zae-limiter/testing";
import { beforeAll, expect, it } from "vitest";
import type { ConsumeRequest } from "../../src/repository/port.ts";
import { Connection } from "../../src/repository/dynamodb/connection.ts";
import { createTable } from "../../src/repository/dynamodb/table.ts";
import type { DynamoTransport } from "../../src/repository/dynamodb/transport.ts";
import { systemClock, systemRandom } from "../../src/repository/system-clock.ts";
import { bucketProcess, type BucketProcess } from "../dynamodb/bucket-process.ts";
import { describeWithEngine, freshTableName } from "../dynamodb/engine.ts";
import { openTransport } from "../dynamodb/transports.ts";

describeWithEngine("an answer that is older than a call", (engine) => {
  let transport: DynamoTransport;
  const tableName = freshTableName();

  beforeAll(async () => {
    transport = await openTransport("lean", engine());
    const options = { transport, tableName, clock: systemClock, random: systemRandom, requestTimeoutMs: 5000, maxAttempts: 3 };
    await createTable(new Connection(options), { stream: false });
  });

  const open = (seed: number, through: DynamoTransport): BucketProcess =>
    bucketProcess({
      transport: through,
      tableName,
      clock: new ManualClock(),
      seed,
      config: ({ level }) => ({ limits: level === "system" ? [Limit.perHour("rpm", 2)] : undefined }),
    });

  it("does not refuse it", async () => {
    const slow = new SlowReplies(transport);
    const [ours, theirs] = [open(1, slow), open(2, transport)];
    await ours.buckets.consume(ONE);
    const taken = await theirs.buckets.consume(ONE);
    if (!taken.granted) throw new Error("refused");
    slow.isHolding = true;
    const early = ours.buckets.consume(ONE);
    // The table has answered that there is nothing, and then it gets something back.
    await slow.held;
    await theirs.buckets.giveBack(taken.receipt);
    const late = ours.buckets.consume(ONE);
    slow.release();
    expect(await early).toMatchObject({ granted: false });
    expect(await late).toMatchObject({ granted: true });
  });
});

const ONE: ConsumeRequest = { entityId: "e", charges: [{ resource: "r", amounts: { rpm: 1 } }], override: undefined };

/** A network whose replies to writes wait while they are held. */
class SlowReplies implements DynamoTransport {
  isHolding = false;
  readonly held: Promise<void>;
  release: () => void = () => {};
  readonly #transport: DynamoTransport;
  readonly #released: Promise<void>;
  #hold: () => void = () => {};

  constructor(transport: DynamoTransport) {
    this.#transport = transport;
    this.held = new Promise((resolve) => (this.#hold = resolve));
    this.#released = new Promise((resolve) => (this.release = resolve));
  }

  async call(operation: string, input: object, options: Parameters<DynamoTransport["call"]>[2]): Promise<object> {
    const [answer] = await Promise.allSettled([this.#transport.call(operation, input, options)]);
    if (this.isHolding && operation === "UpdateItem") {
      this.isHolding = false;
      this.#hold();
      await this.#released;
    }
    if (answer.status === "rejected") throw answer.reason;
    return answer.value;
  }

  close(): void {}
}
