// A deployment that is run again until it succeeds, on an AWS that throttles, loses requests and
// answers, and fails: it always ends with one stack, deployed once, and its table.
import { DescribeTableCommand, DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { expect, it } from "vitest";
import { seededRandom } from "zae-limiter/testing";
import type { Fault } from "./support/scripted-aws/faults.ts";
import { describeWithAws } from "./support/describe-with-aws.ts";
import { freshStack } from "./support/deployment.ts";
import { getEach, seedsFromEnvironment } from "../../limiter/test/support/seeded/seeds.ts";

const SEEDS = seedsFromEnvironment({ usual: 3 });
/** With every tenth request lost, half of these was always enough. */
const MAX_RUNS = 30;
const FAULTS: readonly Fault[] = ["throttle", "drop", "drop-reply", "unavailable"];

describeWithAws("a deployment that is run again", (aws) => {
  it.each(getEach(SEEDS))("seed %i", async (seed) => {
    const random = seededRandom(seed);
    const stack = freshStack(aws());
    let process = new AbortController();
    let requestsLeft = Infinity;
    aws().faults.decide = ({ service }) => {
      // A process that is killed leaves everything as it is, wherever it was.
      if ((requestsLeft -= 1) < 0) process.abort();
      // Faults of DynamoDB are the library's own, and tested there.
      return service === "dynamodb" || random() > 0.25
        ? undefined
        : FAULTS[Math.floor(random() * FAULTS.length)];
    };
    aws().cloudFormation.stepsPerLook = 25;
    if (random() < 0.5) aws().cloudFormation.failAt("AggregatorDLQ", "No queue");
    const outcomes: string[] = [];
    for (
      let runs = 0;
      runs < MAX_RUNS && !/ated$|unchanged/.test(outcomes.at(-1) ?? "");
      runs += 1
    ) {
      process = new AbortController();
      requestsLeft = random() < 0.5 ? Math.floor(random() * 50) : Infinity;
      const outcome = await stack.deploy({ signal: process.signal }).then(
        (report) => report.outcome,
        (error: unknown) => String(error),
      );
      outcomes.push(outcome);
    }
    aws().faults.clear();
    const context = `seed ${seed}: ${outcomes.join("; ")}`;
    const scripted = aws().cloudFormation.stacks.filter(({ name }) => name === stack.stack);
    const standing = scripted.filter(({ deletedAt }) => deletedAt === undefined);
    expect(standing, context).toHaveLength(1);
    const { events, status } = standing[0]!;
    expect(status, context).toBe("CREATE_COMPLETE");
    const begun = events.filter(
      (event) => event.logicalId === stack.stack && /^(CREATE|UPDATE)_IN_P/.test(event.status),
    );
    expect(begun, context).toHaveLength(1);
    const client = new DynamoDBClient({
      endpoint: aws().endpointUrl,
      region: "eu-west-1",
      credentials: { accessKeyId: "local", secretAccessKey: "local" },
    });
    const { Table } = await client.send(new DescribeTableCommand({ TableName: stack.stack }));
    expect(Table?.TableStatus, context).toBe("ACTIVE");
    expect((await stack.deploy()).outcome, context).toBe("unchanged");
  });
});
