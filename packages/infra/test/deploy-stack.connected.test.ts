// Deployments on a scripted AWS, through the SDK's own clients; tables are those of a real engine.
import { DynamoRepository } from "zae-limiter/dynamodb";
import { StackAlreadyExistsError, StackOperationError, VERSION } from "zae-limiter";
import { describe, expect, it, vi } from "vitest";
import { deployStack, lambdaPackage, type ResourceChange, type StackEvent } from "../src/index.ts";
import { AwsError } from "./support/scripted-aws/aws-call.ts";
import { describeWithAws } from "./support/describe-with-aws.ts";
import { freshStack, type TestStack } from "./support/deployment.ts";

async function open({ stack, region, endpointUrl }: TestStack): Promise<DynamoRepository> {
  return DynamoRepository.open("default", { stack, region, endpointUrl, provisioning: "never" });
}

describeWithAws("deployStack", (aws) => {
  const readStatus = ({ stack }: TestStack) => aws().cloudFormation.stack(stack)?.status;
  const readParameters = ({ stack }: TestStack) =>
    aws().cloudFormation.stack(stack)?.target?.parameters;

  it("creates a stack with real code, its table, version record and namespace", async () => {
    const stack = freshStack(aws());
    const events: StackEvent[] = [];
    const report = await stack.deploy({
      onEvent: (event) => events.push(event),
      stackOptions: { auditRetentionDays: 30, tags: { team: "search", ManagedBy: "me" } },
    });
    expect(report).toMatchObject({
      stack: stack.stack,
      region: "eu-west-1",
      account: aws().account,
      outcome: "created",
      outputs: { TableName: stack.stack },
    });
    expect(report.changes.every(({ action }) => action === "add")).toBe(true);
    const { sha256, content } = await lambdaPackage("aggregator");
    const bucket = aws().s3.buckets.get(`zae-limiter-code-${aws().account}-eu-west-1`);
    const key = `zae-limiter/${sha256}/aggregator.zip`;
    expect(Buffer.compare(bucket!.objects.get(key)!, content)).toBe(0);
    expect([...bucket!.settings.keys()]).toEqual(["publicAccessBlock", "encryption"]);
    const { resources } = aws().cloudFormation.stack(stack.stack)!;
    expect(resources.get("AggregatorFunction")?.properties["Code"]).toMatchObject({ S3Key: key });
    expect(aws().cloudFormation.stack(stack.stack)?.target?.tags).toEqual({
      team: "search",
      ManagedBy: "zae-limiter",
      "zae-limiter:name": stack.stack,
      "zae-limiter:type": "limiter",
      "zae-limiter:version": VERSION,
      "zae-limiter:lambda-version": VERSION,
      "zae-limiter:schema-version": "1.0.0",
    });
    await using repository = await open(stack);
    expect(await repository.getVersionRecord()).toMatchObject({
      lambdaVersion: VERSION,
      updatedBy: `deploy:${VERSION}`,
    });
    expect(await repository.getSystemDefaults()).toMatchObject({
      auditRetentionDays: 30,
      usageRetentionDays: 90,
    });

    // Each event once, in its order, from the execution to the end.
    const all = aws().cloudFormation.stack(stack.stack)!.events;
    const wanted = all.slice(1).map(({ logicalId, status }) => `${logicalId} ${status}`);
    expect(events.map(({ logicalId, status }) => `${logicalId} ${status}`)).toEqual(wanted);
  });

  it("does nothing to a stack that is up to date", async () => {
    const stack = freshStack(aws());
    await stack.deploy();
    const executions = aws().getSeen("ExecuteChangeSet").length;
    expect(await stack.deploy()).toMatchObject({
      outcome: "unchanged",
      changes: [],
      outputs: { TableName: stack.stack },
    });
    expect(aws().getSeen("ExecuteChangeSet")).toHaveLength(executions);
    expect(aws().cloudFormation.stack(stack.stack)?.changeSets.size).toBe(1);
  });

  it("W-66: updates template and parameters, and keeps what the caller does not name", async () => {
    const stack = freshStack(aws());
    await stack.deploy({
      stackOptions: { createIamRoles: true, lambdaMemoryMb: 512, tags: { team: "search" } },
    });
    const report = await stack.deploy({ stackOptions: { logRetentionDays: 7 } });
    expect(report.outcome).toBe("updated");
    const change = { action: "modify", because: ["RetentionInDays"] };
    expect(report.changes).toEqual([
      expect.objectContaining({ ...change, logicalId: "AggregatorLogGroup" }),
      expect.objectContaining({ ...change, logicalId: "ProvisionerLogGroup" }),
    ]);
    expect(readParameters(stack)).toMatchObject({
      LogRetentionDays: "7",
      EnableIAMRoles: "true",
      LambdaMemorySize: "512",
    });
    expect(aws().cloudFormation.stack(stack.stack)?.target?.tags["team"]).toBe("search");
    expect(readStatus(stack)).toBe("UPDATE_COMPLETE");
  });

  it("checks capacity with what the stack has, not with the defaults", async () => {
    const stack = freshStack(aws());
    const alone = stack.deploy({ stackOptions: { readCapacity: 500 } });
    await expect(alone).rejects.toThrow("readCapacity: has no effect on demand");
    expect(aws().cloudFormation.stack(stack.stack)).toBeUndefined();
    await stack.deploy({ stackOptions: { billingMode: "provisioned", maxReadCapacity: 1000 } });
    await stack.deploy({ stackOptions: { readCapacity: 500 } });
    expect(readParameters(stack)).toMatchObject({ ReadCapacity: "500", MaxReadCapacity: "1000" });
    const above = stack.deploy({ stackOptions: { readCapacity: 1001 } });
    await expect(above).rejects.toThrow("must not be above maxReadCapacity, which is 1000");
  });

  it("asks before it removes or replaces, and leaves no change set behind", async () => {
    const stack = freshStack(aws());
    await stack.deploy();
    const asked: (readonly ResourceChange[])[] = [];
    const confirm = (changes: readonly ResourceChange[]) => {
      asked.push(changes);
      return false;
    };
    const stackOptions = { enableAlarms: false, policyNameFormat: "team-{}" };
    const declined = await stack.deploy({ stackOptions, confirm });
    expect(declined.outcome).toBe("declined");
    expect(asked[0]!.map(({ action, logicalId }) => `${action} ${logicalId}`)).toEqual(
      expect.arrayContaining(["replace AcquireOnlyPolicy", "remove AggregatorDLQAlarm"]),
    );
    // Without a question, nothing destructive is done.
    const { stack: name, region, endpointUrl } = stack;
    const place = { stack: name, region, endpointUrl };
    expect((await deployStack({ ...place, stackOptions })).outcome).toBe("declined");
    expect(aws().cloudFormation.stack(name)?.changeSets.size).toBe(1);
    expect(readParameters(stack)).toMatchObject({ EnableAlarms: "true" });

    expect((await stack.deploy({ stackOptions, dryRun: true })).outcome).toBe("planned");
    expect(readStatus(stack)).toBe("CREATE_COMPLETE");
    expect((await stack.deploy({ stackOptions })).outcome).toBe("updated");
    expect([...aws().cloudFormation.stack(name)!.resources.keys()].join()).not.toContain("Alarm");
  });

  it("leaves nothing of a creation that was only planned or declined", async () => {
    const stack = freshStack(aws());
    expect((await stack.deploy({ dryRun: true })).outcome).toBe("planned");
    await aws().cloudFormation.advance(stack.stack);
    expect(readStatus(stack)).toBeUndefined();
    expect((await stack.deploy({ confirm: () => false })).outcome).toBe("declined");
    await aws().cloudFormation.advance(stack.stack);
    expect(readStatus(stack)).toBeUndefined();
    expect(await stack.deploy()).toMatchObject({ outcome: "created" });
  });

  it("explains a creation that fails, and deletes what it left when it is run again", async () => {
    const stack = freshStack(aws());
    aws().cloudFormation.failAt("AggregatorRole", "No permission to create a role");
    const error = await stack.deploy().catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(StackOperationError);
    expect(error).toMatchObject({
      code: "ERR_LIMITER_STACK_OPERATION",
      message: expect.stringMatching(
        /: its creation failed at AggregatorRole \(AWS::IAM::Role\): No permission to create a role\. Everything was rolled back/,
      ),
      events: expect.arrayContaining([
        "AggregatorRole CREATE_FAILED: No permission to create a role",
      ]),
    });
    expect(readStatus(stack)).toBe("ROLLBACK_COMPLETE");
    const { stack: name, region, endpointUrl } = stack;
    expect(await deployStack({ stack: name, region, endpointUrl })).toMatchObject({
      outcome: "declined",
      changes: [{ action: "remove", resourceType: "AWS::CloudFormation::Stack" }],
    });
    const notices: string[] = [];
    const report = await stack.deploy({ onNotice: (text) => notices.push(text) });
    expect(report.outcome).toBe("created");
    expect(notices).toEqual([expect.stringContaining("the empty stack is deleted first")]);
  });

  it("explains an update that is rolled back, and can be deployed again", async () => {
    const stack = freshStack(aws());
    await stack.deploy();
    aws().cloudFormation.failAt("AggregatorFunction", "Too much memory");
    await expect(stack.deploy({ stackOptions: { lambdaMemoryMb: 1024 } })).rejects.toThrow(
      /its update failed at AggregatorFunction .*: Too much memory\. The stack is as it was before/,
    );
    expect(readStatus(stack)).toBe("UPDATE_ROLLBACK_COMPLETE");
    expect(readParameters(stack)).toMatchObject({ LambdaMemorySize: "256" });
    expect((await stack.deploy({ stackOptions: { lambdaMemoryMb: 1024 } })).outcome).toBe(
      "updated",
    );
  });

  it("waits for an operation of another process, and then goes on", async () => {
    const stack = freshStack(aws());
    expect((await stack.deploy({ wait: false })).outcome).toBe("started");
    expect(readStatus(stack)).toBe("CREATE_IN_PROGRESS");
    const notices: string[] = [];
    const report = await stack.deploy({ onNotice: (text) => notices.push(text) });
    expect(notices).toEqual([
      `Stack ${stack.stack} is in CREATE_IN_PROGRESS; waiting until that has ended.`,
    ]);
    // The work after the stack, which was left undone, is done now.
    expect(report.outcome).toBe("unchanged");
    await using repository = await open(stack);
    expect((await repository.getVersionRecord())?.lambdaVersion).toBe(VERSION);
  });

  it("does not touch a stack that is not ours", async () => {
    const stack = freshStack(aws());
    aws().cloudFormation.putStack(stack.stack);
    const before = aws().seen.length;
    await expect(stack.deploy()).rejects.toBeInstanceOf(StackAlreadyExistsError);
    expect(
      aws()
        .seen.slice(before)
        .map(({ action }) => action),
    ).toEqual(["GetCallerIdentity", "DescribeStacks"]);
  });

  it("refuses a stack of the Python zae-limiter, whose table it could not change", async () => {
    const stack = freshStack(aws());
    const template = JSON.stringify({
      Parameters: { SchemaVersion: { Type: "String", Default: "0.10.0" } },
      Resources: { Topic: { Type: "AWS::SNS::Topic" } },
    });
    const tags = { ManagedBy: "zae-limiter" };
    aws().cloudFormation.putStack(stack.stack, { tags, template });
    await expect(stack.deploy()).rejects.toThrow(
      `copy the items: zae-limiter upgrade --stack ${stack.stack} --into NEW`,
    );
  });

  it("adopts a table that exists without a stack, with what is in it", async () => {
    const stack = freshStack(aws());
    const { stack: name, region, endpointUrl } = stack;
    const place = { stack: name, region, endpointUrl };
    await using before = await DynamoRepository.open("tenant", { ...place, provisioning: "table" });
    await before.createEntity("key-1");
    const report = await stack.deploy();
    expect(report.changes.filter(({ action }) => action === "import")).toEqual([
      expect.objectContaining({ logicalId: "RateLimitsTable" }),
    ]);
    expect(await before.getEntity("key-1")).toBeDefined();
    // The name of the table is written out only for the import: a later deployment sees no change.
    expect((await stack.deploy()).outcome).toBe("unchanged");
  });

  it("reads all pages of events and changes", async () => {
    const stack = freshStack(aws());
    aws().cloudFormation.pageSize = 7;
    const events: StackEvent[] = [];
    const report = await stack.deploy({ onEvent: (event) => events.push(event) });
    aws().cloudFormation.pageSize = 100;
    const scripted = aws().cloudFormation.stack(stack.stack)!;
    expect(report.changes).toHaveLength(scripted.resources.size);
    expect(events).toHaveLength(scripted.events.length - 1);
  });

  it("does not take an answer that is some seconds old for the end", async () => {
    const stack = freshStack(aws());
    aws().cloudFormation.staleLooks = 3;
    expect(await stack.deploy()).toMatchObject({
      outcome: "created",
      outputs: { TableName: stack.stack },
    });
    await stack.deploy({ stackOptions: { logRetentionDays: 7 } });
    expect((await stack.deploy({ stackOptions: { logRetentionDays: 14 } })).outcome).toBe(
      "updated",
    );
    aws().cloudFormation.staleLooks = 0;
    expect(readStatus(stack)).toBe("UPDATE_COMPLETE");
    expect(readParameters(stack)).toMatchObject({ LogRetentionDays: "14" });
  });

  it("leaves code and its version out where there is no role that could run it", async () => {
    const stack = freshStack(aws());
    await stack.deploy({ stackOptions: { createIam: false } });
    const { target } = aws().cloudFormation.stack(stack.stack)!;
    expect(target!.parameters).toMatchObject({ AggregatorCodeKey: "", ProvisionerCodeKey: "" });
    expect(target!.tags).not.toHaveProperty("zae-limiter:lambda-version");
  });

  it("does not believe a change set that failed for an earlier state of the stack", async () => {
    const stack = freshStack(aws());
    await stack.deploy();
    // The process dies before it removes the change set that has no changes.
    aws().faults.always("DeleteChangeSet", "unavailable");
    await expect(stack.deploy({ stackOptions: { lambdaMemoryMb: 256 } })).rejects.toThrow();
    aws().faults.clear();
    // The function gets another size, without a change set.
    const found = aws().cloudFormation.stack(stack.stack)!;
    const { target, resources } = found;
    found.target = { ...target!, parameters: { ...target!.parameters, LambdaMemorySize: "512" } };
    const aggregator = resources.get("AggregatorFunction")!;
    aggregator.properties = { ...aggregator.properties, MemorySize: 512 };
    const again = await stack.deploy({ stackOptions: { lambdaMemoryMb: 256 } });
    expect(again.outcome).toBe("updated");
  });

  describe("with faults", () => {
    it("is ended by its signal while a request gets no answer", async () => {
      const interruption = new AbortController();
      aws().faults.always("GetCallerIdentity", "hang");
      const before = aws().getSeen("GetCallerIdentity").length;
      const deployment = freshStack(aws()).deploy({ signal: interruption.signal });
      const ended = expect(deployment).rejects.toMatchObject({ name: "AbortError" });
      await vi.waitFor(() => expect(aws().getSeen("GetCallerIdentity")).toHaveLength(before + 1));
      interruption.abort();
      await ended;
    });

    it("waits while another process creates the same bucket for code", async () => {
      const conflict = "A conflicting conditional operation is currently in progress";
      aws().s3.buckets.clear();
      aws().faults.next("CreateBucket", new AwsError("OperationAborted", conflict, 409));
      expect((await freshStack(aws()).deploy()).outcome).toBe("created");
    });

    it("gives up after a bounded number of attempts", async () => {
      aws().faults.always("DescribeStacks", "throttle");
      const before = aws().getSeen("DescribeStacks").length;
      await expect(freshStack(aws()).deploy()).rejects.toMatchObject({
        code: "ERR_LIMITER_UNAVAILABLE",
        message: expect.stringContaining("cloudformation:DescribeStacks"),
      });
      expect(aws().getSeen("DescribeStacks").length - before).toBe(8);
    });

    it.each(["CreateChangeSet", "ExecuteChangeSet"])(
      "executes once although the answer to %s was lost",
      async (action) => {
        const stack = freshStack(aws());
        aws().faults.next(action, "drop-reply");
        expect((await stack.deploy()).outcome).toBe("created");
        const { events } = aws().cloudFormation.stack(stack.stack)!;
        const begun = events.filter(
          ({ logicalId, status }) => logicalId === stack.stack && status === "CREATE_IN_PROGRESS",
        );
        expect(begun).toHaveLength(1);
      },
    );
  });
});
