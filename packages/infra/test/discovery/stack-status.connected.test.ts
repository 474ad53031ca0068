// Everything that `stackStatus` reads, through the SDK's clients: a stack from the real template on
// the scripted AWS, in front of a real engine.
import { DynamoDBClient, UpdateItemCommand } from "@aws-sdk/client-dynamodb";
import { VERSION } from "zae-limiter";
import { DynamoRepository } from "zae-limiter/dynamodb";
import { afterEach, beforeAll, expect, it } from "vitest";
import { heartbeatUpdate } from "../../../limiter/src/repository/dynamodb/items/heartbeat-item.ts";
import { freshTableName } from "../../../limiter/test/support/engine.ts";
import { stackStatus, type StackStatus } from "../../src/index.ts";
import { deployedStack } from "../support/deployed-stack.ts";
import { describeWithAws } from "../support/describe-with-aws.ts";

/** When the aggregator of the stack has counted; most tests look an hour later. */
const COUNTED_MS = Date.parse("2026-11-15T06:30:00Z");
const LATER_MS = COUNTED_MS + 3_600_000;
const SOON_MS = COUNTED_MS + 5000;

const denied = (action: string): string =>
  `AWS denied ${action}: allow it in the policies of the credentials.`;

describeWithAws("the status of a stack", (aws) => {
  /** One stack for all tests: deploying takes the longest. */
  let stack: string;
  beforeAll(async () => {
    stack = await deployedStack(aws());
    await open(stack);
    await writeHeartbeat(stack);
  });

  afterEach(() => {
    Object.assign(aws().cloudFormation.stack(stack)!, {
      status: "CREATE_COMPLETE",
      reason: undefined,
    });
  });

  const look = (name = stack, nowMs = LATER_MS): Promise<StackStatus> =>
    stackStatus({
      stack: name,
      region: "eu-west-1",
      endpointUrl: aws().endpointUrl,
      nowMs: () => nowMs,
    });

  /** Opens the table once, as the first client does, which records its version. */
  async function open(name: string): Promise<void> {
    const { endpointUrl } = aws();
    const options = { stack: name, region: "eu-west-1", endpointUrl } as const;
    await (await DynamoRepository.open(undefined, options)).close();
  }

  /** What an aggregator writes when it has counted. */
  async function writeHeartbeat(name: string): Promise<void> {
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
        reason: "usage is counted",
        heartbeat: { countedUntil: new Date(COUNTED_MS), lagMs: 5000 },
      },
      versions: { client: VERSION, schema: "1.0.0", minimumClient: "0.0.0", compatible: true },
      functions: [
        { logicalId: "AggregatorFunction", physicalId: `${stack}-aggregator` },
        { logicalId: "ProvisionerFunction", physicalId: `${stack}-limits-provisioner` },
      ],
      roles: [
        { logicalId: "AggregatorRole", physicalId: `${stack}-aggr` },
        { logicalId: "ProvisionerRole", physicalId: `${stack}-prov` },
      ],
    });
    expect(status.policies).toContainEqual({
      logicalId: "AcquireOnlyPolicy",
      physicalId: expect.stringMatching(`policy/${stack}-acq$`),
    });
    const sent = aws().seen.slice(before);
    const reads = /^(Describe|List|Get|BatchGet|Query)/;
    expect(sent.filter(({ action }) => !reads.test(action))).toEqual([]);
    const services = new Set(sent.map(({ service }) => service));
    expect([...services].toSorted()).toEqual(["cloudformation", "dynamodb"]);
  });

  it("a function that has not counted for a while is a problem [W-78]", async () => {
    const { aggregator, table, problems } = await look();
    expect(table).toMatchObject({ streamArn: expect.any(String) });
    expect(aggregator.state).toBe("broken");
    expect(problems).toEqual([
      `The aggregator is broken: the function ${stack}-aggregator does not count: ` +
        "see its log, its event source and its dead letters",
    ]);
  });

  it("a runner in place of the function is seen by its heartbeat [W-78]", async () => {
    const name = freshTableName();
    await open(name);
    await writeHeartbeat(name);
    expect((await look(name, COUNTED_MS + 60_000)).aggregator.state).toBe("enabled");
    expect((await look(name)).aggregator.state).toBe("none");
  });

  it.each(["ROLLBACK_COMPLETE", "UPDATE_ROLLBACK_FAILED", "DELETE_FAILED"])(
    "a stack in %s is a problem",
    async (status) => {
      Object.assign(aws().cloudFormation.stack(stack)!, { status, reason: "No such role." });
      expect((await look(stack, SOON_MS)).problems).toEqual([
        `The stack is in ${status}: No such role.`,
      ]);
    },
  );

  it("an update that was rolled back is only a warning: the stack works as before", async () => {
    Object.assign(aws().cloudFormation.stack(stack)!, { status: "UPDATE_ROLLBACK_COMPLETE" });
    const { problems, warnings } = await look(stack, SOON_MS);
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

  it("a part without permission is unknown, and does not affect the others", async () => {
    aws().faults.deny("dynamodb:DescribeTimeToLive");
    expect(await look(stack, SOON_MS)).toMatchObject({
      problems: [],
      table: {
        status: "ACTIVE",
        ttlAttribute: { unknown: denied("dynamodb:DescribeTimeToLive") },
      },
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
    for (const part of ["infrastructure", "table", "versions", "roles", "functions"] as const)
      expect({ part, seen: rest[part] }).toEqual({ part, seen: { unknown: expect.any(String) } });
    expect(rest.aggregator.state).toBe("unknown");
  });

  it("shows a table without a stack", async () => {
    const name = freshTableName();
    await open(name);
    expect(await look(name)).toMatchObject({
      problems: [],
      connectivity: { reachable: true },
      infrastructure: undefined,
      table: { status: "ACTIVE" },
      aggregator: { state: "none" },
      roles: undefined,
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
      aggregator: { state: "unknown" },
    });
  });

  it("does not wait for a service that never answers, and ends when its signal aborts", async () => {
    aws().faults.always("ListStackResources", "hang");
    const place = { stack, region: "eu-west-1", endpointUrl: aws().endpointUrl };
    const { functions } = await stackStatus({ ...place, timeoutMs: 200 });
    expect(functions).toEqual({ unknown: "CloudFormation did not answer in time" });
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
