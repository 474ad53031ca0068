import { Limit } from "zae-limiter";
import { ManualClock } from "zae-limiter/testing";
import { beforeAll, expect, it } from "vitest";
import type { DynamoTransport } from "../../../src/repository/dynamodb/transport/transport.ts";
import {
  bucketProcess,
  grant,
  requestFor,
  type BucketProcess,
} from "../../support/bucket-process.ts";
import { connectToNewTable } from "../../support/connect.ts";
import { describeWithEngine } from "../../support/engine.ts";
import { HeldTransport } from "../../support/held-transport.ts";

describeWithEngine("old answers", (engine) => {
  let transport: DynamoTransport;
  let tableName: string;

  beforeAll(async () => {
    ({ transport, tableName } = await connectToNewTable(engine().endpointUrl, {
      transport: "lean",
    }));
  });

  const open = (seed: number, through: DynamoTransport): BucketProcess =>
    bucketProcess({
      transport: through,
      tableName,
      clock: new ManualClock(),
      seed,
      config: ({ level }) => ({
        limits: level === "system" ? [Limit.perHour("rpm", 2)] : undefined,
      }),
    });

  it("an answer that is older than a call does not refuse it", async () => {
    const slow = new HeldTransport(transport);
    const [ours, theirs] = [open(1, slow), open(2, transport)];
    await ours.buckets.consume(ONE);
    const taken = await grant(theirs, ONE);
    const answer = slow.hold("UpdateItem", "answer");
    const early = ours.buckets.consume(ONE);
    // The table has answered that there is nothing, and then it gets something back.
    await answer.arrived;
    await theirs.buckets.giveBack(taken);
    const late = ours.buckets.consume(ONE);
    answer.release();
    expect(await early).toMatchObject({ granted: false });
    expect(await late).toMatchObject({ granted: true });
  });
});

const ONE = requestFor("e", { rpm: 1 });
