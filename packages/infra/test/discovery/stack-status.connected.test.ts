// Everything that `stackStatus` reads, through the SDK's clients: a stack from the real template on
// the scripted AWS, in front of a real engine.
import { DynamoDBClient, UpdateItemCommand } from "@aws-sdk/client-dynamodb";
import { VERSION } from "zae-limiter";
import { DynamoRepository } from "zae-limiter/dynamodb";
import { afterEach, beforeAll, beforeEach, expect, it } from "vitest";
import { heartbeatUpdate } from "../../../limiter/src/repository/dynamodb/items/heartbeat-item.ts";
import { freshTableName } from "../../../limiter/test/support/engine.ts";
import { stackStatus, type StackStatus } from "../../src/index.ts";
import { deployedStack } from "../support/deployed-stack.ts";
import { describeWithAws } from "../support/describe-with-aws.ts";
import type { ScriptedMapping } from "../support/scripted-aws/scripted-lambda.ts";

/** When the aggregator of the stack has counted; most tests look an hour later. */
const COUNTED_MS = Date.parse("2026-11-15T06:30:00Z");
const LATER_MS = COUNTED_MS + 3_600_000;

const denied = (action: string): string =>
  `AWS denied ${action}: allow it in the policies of the credentials.`;

describeWithAws("the status of a stack", (aws) => {
  /** Of one stack, which every test gets as it was deployed: deploying takes the longest. */
  let stack: string;
  let asDeployed: readonly (readonly [object, object])[];

  beforeAll(async () => {
    stack = await deployedStack(aws());
    await opened(stack);
    await counted(stack);
  });

  beforeEach(() => {
    const parts = [
      functionOf(stack),
      mappingOf(stack),
      aws().cloudFormation.stack(stack)!,
      aws().cloudWatch.alarms.get(`${stack}-aggregator-dlq-alarm`)!,
      aws().sqs.queues.get(`${stack}-aggregator-dlq`)!,
    ];
    asDeployed = parts.map((part) => [part, { ...part }] as const);
  });

  afterEach(() => {
    for (const [part, before] of asDeployed) Object.assign(part, before);
  });

  const look = (name = stack, nowMs = LATER_MS): Promise<StackStatus> =>
    stackStatus({
      stack: name,
      region: "eu-west-1",
      endpointUrl: aws().endpointUrl,
      nowMs: () => nowMs,
    });

  /** Opens the table once, as the first client does, which records its version. */
  async function opened(name: string): Promise<void> {
    const { endpointUrl } = aws();
    const options = { stack: name, region: "eu-west-1", endpointUrl } as const;
    await (await DynamoRepository.open(undefined, options)).close();
  }

  function functionOf(name: string): Record<string, unknown> {
    return aws().lambda.functions.get(`${name}-aggregator`)!.configuration;
  }

  function mappingOf(name: string): ScriptedMapping {
    return [...aws().lambda.mappings.values()].find(({ FunctionArn }) =>
      FunctionArn.endsWith(`:${name}-aggregator`),
    )!;
  }

  /** What an aggregator writes when it has counted. */
  async function counted(name: string): Promise<void> {
    const client = new DynamoDBClient({
      endpoint: aws().endpointUrl,
      region: "eu-west-1",
      credentials: { accessKeyId: "test", secretAccessKey: "test" },
    });
    const beat = { countedUntilMs: COUNTED_MS, seenMs: COUNTED_MS, writtenBy: "test" };
    const input = { TableName: name, ...heartbeatUpdate(beat) };
    await client.send(new UpdateItemCommand(input as never));
    client.destroy();
  }

  it("shows a healthy stack with all of its parts, and changes nothing", async () => {
    const before = aws().seen.length;
    const status = await look(stack, COUNTED_MS + 5000);
    expect(status).toMatchObject({
      stack,
      region: "eu-west-1",
      problems: [],
      warnings: [],
      connectivity: { reachable: true, latencyMs: expect.any(Number) },
      infrastructure: { status: "CREATE_COMPLETE", isOurs: true, version: VERSION, drift: [] },
      table: {
        status: "ACTIVE",
        billing: "on demand",
        streamArn: expect.stringContaining(`table/${stack}/stream/`),
        ttlAttribute: { name: "ttl" },
        pointInTimeRecovery: { days: 35 },
        deletionProtection: false,
        indexes: { GSI1: "ACTIVE", GSI2: "ACTIVE", GSI3: "ACTIVE", GSI4: "ACTIVE" },
      },
      aggregator: {
        state: "enabled",
        reason: `the function ${stack}-aggregator counts`,
        function: { state: "Active", lastUpdate: "Successful", runtime: "nodejs22.x" },
        mapping: { state: "Enabled", lastResult: "No records processed" },
        heartbeat: { countedUntil: new Date(COUNTED_MS), lagMs: 5000 },
        deadLetters: { queue: `${stack}-aggregator-dlq`, messages: 0 },
      },
      versions: { client: VERSION, schema: "1.0.0", minimumClient: "0.0.0", compatible: true },
      provisioner: { name: `${stack}-limits-provisioner`, state: "Active" },
      roles: [
        { logicalId: "AggregatorRole", physicalId: `${stack}-aggr` },
        { logicalId: "ProvisionerRole", physicalId: `${stack}-prov` },
      ],
    });
    expect(status.policies).toContainEqual({
      logicalId: "AcquireOnlyPolicy",
      physicalId: expect.stringMatching(`policy/${stack}-acq$`),
    });
    expect(status.alarms).toContainEqual({
      name: `${stack}-aggregator-dlq-alarm`,
      state: "OK",
      description: expect.any(String),
      hasAction: false,
    });
    const reads = /^(Describe|List|Get|BatchGet|Query)/;
    expect(
      aws()
        .seen.slice(before)
        .filter(({ action }) => !reads.test(action)),
    ).toEqual([]);
  });

  it("warns of a provisioner that has failed, and knows none where there is none", async () => {
    const name = `${stack}-limits-provisioner`;
    const found = aws().lambda.functions.get(name)!;
    const failed = { ...found.configuration, State: "Failed", StateReason: "Its key is gone" };
    aws().lambda.functions.set(name, { ...found, configuration: failed });
    const { problems, warnings } = await look();
    expect(problems).toEqual([]);
    expect(warnings).toContain(
      `Templates cannot declare limits: ${name} has failed: Its key is gone`,
    );
    aws().lambda.functions.delete(name);
    expect((await look()).provisioner).toBeUndefined();
    aws().lambda.functions.set(name, found);
  });

  it("a function that is missing is no aggregator, although the table has a stream [W-78]", async () => {
    const found = aws().lambda.functions.get(`${stack}-aggregator`)!;
    aws().lambda.functions.delete(`${stack}-aggregator`);
    const { aggregator, table, problems } = await look();
    aws().lambda.functions.set(`${stack}-aggregator`, found);
    expect(table).toMatchObject({ streamArn: expect.any(String) });
    expect(aggregator).toMatchObject({ state: "none", function: undefined });
    expect(problems).toEqual([]);
  });

  it("a runner in place of the function is seen by its heartbeat [W-78]", async () => {
    const name = freshTableName();
    await opened(name);
    await counted(name);
    const { aggregator } = await look(name, COUNTED_MS + 60_000);
    expect(aggregator).toMatchObject({ state: "enabled", function: undefined });
    expect((await look(name)).aggregator).toMatchObject({ state: "none" });
  });

  it.each([
    ["switched off by somebody", { State: "Disabled", StateTransitionReason: "User action" }, []],
    [
      "switched off by Lambda",
      { State: "Disabled", StateTransitionReason: "Function not found" },
      [
        "The aggregator is broken: Lambda switched the event source mapping off: Function not found",
      ],
    ],
    [
      "with a problem",
      { LastProcessingResult: "PROBLEM: Function call failed" },
      ["The aggregator is broken: the event source mapping has a problem: Function call failed"],
    ],
    [
      "of an earlier stream",
      { EventSourceArn: "arn:aws:dynamodb:eu-west-1:123456789012:table/old/stream/1" },
      [
        "The aggregator is broken: the event source mapping reads a stream that is not the table's: arn:aws:dynamodb:eu-west-1:123456789012:table/old/stream/1",
      ],
    ],
  ])("an event source %s is no aggregator [W-78]", async (_, changed, problems) => {
    Object.assign(mappingOf(stack), changed);
    const status = await look();
    expect(status.problems).toEqual(problems);
    expect(status.aggregator.state).toBe(problems.length === 0 ? "disabled" : "broken");
  });

  it("a function that failed is a problem, with its reason [W-78]", async () => {
    Object.assign(functionOf(stack), { State: "Failed", StateReason: "The role is gone." });
    expect((await look()).problems).toEqual([
      `The aggregator is broken: the function ${stack}-aggregator has failed: The role is gone.`,
    ]);
  });

  it("warns of dead letters and of alarms, which are no failure of the stack", async () => {
    aws().sqs.queues.get(`${stack}-aggregator-dlq`)!["ApproximateNumberOfMessages"] = "2";
    const alarm = aws().cloudWatch.alarms.get(`${stack}-aggregator-dlq-alarm`)!;
    Object.assign(alarm, { StateValue: "ALARM", StateReason: "Threshold crossed." });
    const { problems, warnings, aggregator } = await look();
    expect(aggregator.deadLetters).toMatchObject({ messages: 2 });
    expect({ problems, warnings }).toEqual({
      problems: [],
      warnings: [
        `2 messages wait in ${stack}-aggregator-dlq`,
        `Alarm ${stack}-aggregator-dlq-alarm: Threshold crossed.`,
      ],
    });
  });

  it("shows no alarm of a stack whose name begins like this one", async () => {
    const other = { AlarmName: `${stack}-2-read-throttle`, StateValue: "ALARM" } as const;
    aws().cloudWatch.alarms.set(other.AlarmName, other);
    expect((await look()).warnings).toEqual([]);
  });

  it.each(["ROLLBACK_COMPLETE", "UPDATE_ROLLBACK_FAILED", "DELETE_FAILED"])(
    "a stack in %s is a problem",
    async (status) => {
      Object.assign(aws().cloudFormation.stack(stack)!, { status, reason: "No such role." });
      expect((await look()).problems).toEqual([`The stack is in ${status}: No such role.`]);
    },
  );

  it("an update that was rolled back is only a warning: the stack works as before", async () => {
    Object.assign(aws().cloudFormation.stack(stack)!, { status: "UPDATE_ROLLBACK_COMPLETE" });
    const { problems, warnings } = await look();
    expect(problems).toEqual([]);
    expect(warnings).toEqual([expect.stringMatching(/^The stack is in UPDATE_ROLLBACK_COMPLETE/)]);
  });

  it("says where the versions of the tags differ from the client", async () => {
    const deployed = aws().cloudFormation.stack(stack)!;
    const tags = { ...deployed.target!.tags, "zae-limiter:version": "0.0.9" };
    Object.assign(deployed, { target: { ...deployed.target!, tags } });
    const { infrastructure, warnings } = await look();
    const drift = `the tag zae-limiter:version is 0.0.9, and this client is ${VERSION}`;
    expect(infrastructure).toMatchObject({ version: "0.0.9", drift: [drift] });
    expect(warnings).toEqual([`Versions differ: ${drift}`]);
  });

  it("what may not be seen is unknown in its own part, and leaves the others alone", async () => {
    aws().faults.deny("cloudwatch:DescribeAlarms");
    aws().faults.deny("dynamodb:DescribeTimeToLive");
    aws().faults.deny("sqs:GetQueueUrl");
    const status = await look();
    expect(status).toMatchObject({
      problems: [],
      alarms: { unknown: denied("cloudwatch:DescribeAlarms") },
      table: {
        status: "ACTIVE",
        ttlAttribute: { unknown: denied("dynamodb:DescribeTimeToLive") },
      },
      aggregator: {
        state: "enabled",
        deadLetters: { unknown: denied("sqs:GetQueueUrl") },
      },
    });
  });

  it("without permission for the stack, the table and the aggregator are still seen", async () => {
    aws().faults.deny("cloudformation:DescribeStacks");
    aws().faults.deny("cloudformation:ListStackResources");
    const unknown = denied("cloudformation:ListStackResources");
    expect(await look()).toMatchObject({
      problems: [],
      connectivity: { reachable: true },
      infrastructure: { unknown: denied("cloudformation:DescribeStacks") },
      roles: { unknown },
      policies: { unknown },
      alarms: { unknown },
      table: { status: "ACTIVE" },
      aggregator: { state: "enabled" },
    });
  });

  it("without any permission it says so everywhere, and does not throw", async () => {
    aws().faults.always("*", "deny");
    const { connectivity, problems, ...rest } = await look();
    expect(connectivity).toEqual({
      reachable: false,
      reason: expect.stringContaining("not authorized to perform: dynamodb:BatchGetItem"),
    });
    expect(problems).toEqual([expect.stringContaining("The table cannot be used: ")]);
    for (const part of ["infrastructure", "table", "versions", "roles", "alarms"] as const)
      expect({ part, seen: rest[part] }).toEqual({ part, seen: { unknown: expect.any(String) } });
    expect(rest.aggregator.state).toBe("unknown");
  });

  it("shows a table without a stack", async () => {
    const name = freshTableName();
    await opened(name);
    expect(await look(name)).toMatchObject({
      problems: [],
      connectivity: { reachable: true },
      infrastructure: undefined,
      table: { status: "ACTIVE" },
      aggregator: { state: "none", function: undefined, deadLetters: undefined },
      roles: undefined,
      alarms: undefined,
    });
  });

  it("shows that there is nothing", async () => {
    const name = freshTableName();
    expect(await look(name)).toMatchObject({
      connectivity: {
        reachable: false,
        reason: expect.stringContaining(`Neither a stack nor a table ${name} exists`),
      },
      infrastructure: undefined,
      table: undefined,
      aggregator: { state: "none" },
    });
  });

  it("answers although throttled", async () => {
    aws().faults.throttle("DescribeStacks", 1);
    aws().faults.throttle("DescribeTable", 1);
    expect(await look()).toMatchObject({
      problems: [],
      infrastructure: { status: "CREATE_COMPLETE" },
      table: { status: "ACTIVE" },
    });
  });

  it("does not wait for a service that never answers, and ends when it is told to", async () => {
    aws().faults.always("GetQueueUrl", "hang");
    const place = { stack, region: "eu-west-1", endpointUrl: aws().endpointUrl };
    const { aggregator } = await stackStatus({ ...place, timeoutMs: 200 });
    expect(aggregator.deadLetters).toEqual({ unknown: "SQS did not answer in time" });
    const stopped = stackStatus({ ...place, signal: AbortSignal.abort(new Error("Enough.")) });
    await expect(stopped).rejects.toThrow("Enough.");
  });

  it("shows that a table is made for newer clients", async () => {
    const { endpointUrl } = aws();
    const options = { stack: freshTableName(), region: "eu-west-1", endpointUrl } as const;
    const repository = await DynamoRepository.open(undefined, options);
    await repository.setVersionRecord({ schemaVersion: "1.0.0", clientMinVersion: "99.0.0" });
    await repository.close();
    const { versions, problems } = await look(options.stack);
    expect(versions).toMatchObject({ client: VERSION, schema: "1.0.0", compatible: false });
    expect(problems).toEqual([expect.stringContaining("requires version 99.0.0 or newer")]);
  });
});
