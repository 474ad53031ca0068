// Stacks that applications ensure, update and delete, on a scripted AWS.
import { DescribeTableCommand, DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { InfrastructureNotFoundError, StackOperationError, VERSION } from "zae-limiter";
import { DynamoRepository } from "zae-limiter/dynamodb";
import { describe, expect, it } from "vitest";
import { deleteStack, ensureStack, updateLambda, type StackEvent } from "../src/index.ts";
import { describeWithAws } from "./support/describe-with-aws.ts";
import { freshStack, getPlace, type TestStack } from "./support/deployment.ts";

describeWithAws("stacks", (aws) => {
  const scripted = ({ stack }: TestStack) => aws().cloudFormation.stack(stack);
  const listExecutions = ({ stack }: TestStack) =>
    aws()
      .cloudFormation.stacks.filter(({ name }) => name === stack)
      .flatMap(({ events }) => events)
      .filter(({ logicalId, status }) => logicalId === stack && /^(CREATE|UPDATE)_IN/.test(status));
  const tableExists = async ({ stack }: TestStack): Promise<boolean> => {
    const credentials = { accessKeyId: "local", secretAccessKey: "local" };
    const place = { endpoint: aws().endpointUrl, region: "eu-west-1", credentials };
    const client = new DynamoDBClient(place);
    return client.send(new DescribeTableCommand({ TableName: stack })).then(
      () => true,
      () => false,
    );
  };

  describe("ensureStack", () => {
    it("changes nothing about a stack that exists", async () => {
      const stack = freshStack(aws());
      await stack.deploy();
      await ensureStack(getPlace(stack), { enableAlarms: false });
      expect(scripted(stack)?.target?.parameters["EnableAlarms"]).toBe("true");
      expect(listExecutions(stack)).toHaveLength(1);
    });

    it("explains a stack whose creation failed, and leaves it to a person", async () => {
      const stack = freshStack(aws());
      aws().cloudFormation.failAt("AggregatorDLQ", "No queue");
      const failed = /its creation failed at AggregatorDLQ .*: No queue/;
      await expect(ensureStack(getPlace(stack))).rejects.toThrow(failed);
      await expect(ensureStack(getPlace(stack))).rejects.toThrow(failed);
      expect(scripted(stack)?.status).toBe("ROLLBACK_COMPLETE");
    });
  });

  it("a change set that is declined takes no stack with it that another process creates", async () => {
    const stack = freshStack(aws());
    const confirm = async (): Promise<boolean> => {
      await stack.deploy({ wait: false, stackOptions: { lambdaMemoryMb: 512 } });
      return false;
    };
    expect((await stack.deploy({ confirm })).outcome).toBe("declined");
    expect(scripted(stack)?.status).toBe("CREATE_IN_PROGRESS");
  });

  describe("updateLambda", () => {
    it("changes the code by change set, and everything else stays", async () => {
      const stack = freshStack(aws());
      await stack.deploy({ stackOptions: { lambdaMemoryMb: 512, tags: { team: "search" } } });
      const { target } = scripted(stack)!;
      // As an older version left it.
      const parameters = { ...target!.parameters, AggregatorCodeKey: "zae-limiter/old.zip" };
      const tags = { ...target!.tags, "zae-limiter:lambda-version": "0.0.1" };
      scripted(stack)!.target = { ...target!, parameters, tags };
      const declared = scripted(stack)!.resources.get("AggregatorFunction")!;
      declared.properties = { ...declared.properties, Code: { S3Key: "zae-limiter/old.zip" } };
      await updateLambda(getPlace(stack));
      expect(scripted(stack)?.status).toBe("UPDATE_COMPLETE");
      expect(scripted(stack)?.target?.parameters).toEqual(target!.parameters);
      expect(scripted(stack)?.target?.tags).toEqual(target!.tags);
      expect(aws().getSeen("UpdateFunctionCode")).toEqual([]);
      await updateLambda(getPlace(stack));
      expect(listExecutions(stack)).toHaveLength(2);
      const repository = await DynamoRepository.open("default", {
        ...getPlace(stack),
        provisioning: "never",
      });
      expect((await repository.getVersionRecord())?.lambdaVersion).toBe(VERSION);
      await repository.close();
    });

    it("says what to do where there is no stack, or one of another release", async () => {
      const stack = freshStack(aws());
      await expect(updateLambda(getPlace(stack))).rejects.toBeInstanceOf(
        InfrastructureNotFoundError,
      );
      aws().cloudFormation.putStack(stack.stack, { tags: { ManagedBy: "zae-limiter" } });
      await expect(updateLambda(getPlace(stack))).rejects.toThrow(
        `run zae-limiter deploy --stack ${stack.stack}`,
      );
    });
  });

  describe("deleteStack", () => {
    it("keeps table and archive, and a later deployment adopts the table", async () => {
      const stack = freshStack(aws());
      await stack.deploy();
      const bucket = scripted(stack)?.resources.get("AuditArchiveBucket")?.physicalId;
      const events: StackEvent[] = [];
      const report = await deleteStack({
        ...getPlace(stack),
        onEvent: (each) => events.push(each),
      });
      expect(report).toMatchObject({ outcome: "deleted", retained: [stack.stack, bucket] });
      expect(events.at(-1)).toMatchObject({ status: "DELETE_COMPLETE", logicalId: stack.stack });
      expect(await tableExists(stack)).toBe(true);
      expect(scripted(stack)).toBeUndefined();
      expect((await stack.deploy()).changes).toContainEqual(
        expect.objectContaining({ action: "import", logicalId: "RateLimitsTable" }),
      );
    });

    it("deletes the table too if asked to, and needs no stack", async () => {
      const stack = freshStack(aws());
      await stack.deploy();
      await deleteStack({ ...getPlace(stack), withData: true });
      expect(await tableExists(stack)).toBe(false);
      expect(await deleteStack({ ...getPlace(stack), withData: true })).toMatchObject({
        outcome: "absent",
      });
    });

    it("keeps the table if the stack is deployed again meanwhile", async () => {
      const stack = freshStack(aws());
      await stack.deploy();
      const onEvent = ({ status, logicalId }: StackEvent): void => {
        if (status === "DELETE_COMPLETE" && logicalId === stack.stack)
          aws().cloudFormation.putStack(stack.stack, { tags: { ManagedBy: "zae-limiter" } });
      };
      const deletion = deleteStack({ ...getPlace(stack), withData: true, onEvent });
      await expect(deletion).rejects.toThrow("it was deployed again");
      expect(await tableExists(stack)).toBe(true);
    });

    it("refuses before anything is deleted", async () => {
      const stack = freshStack(aws());
      aws().cloudFormation.putStack(stack.stack);
      await expect(deleteStack(getPlace(stack))).rejects.toThrow("not created by zae-limiter");
      await expect(
        deleteStack({ ...getPlace(stack), withData: true, wait: false }),
      ).rejects.toMatchObject({ field: "wait" });
      const ours = aws().cloudFormation.putStack(stack.stack, {
        tags: { ManagedBy: "zae-limiter" },
      });
      ours.terminationProtection = true;
      await expect(deleteStack(getPlace(stack))).rejects.toThrow("protected against termination");
      expect(ours.status).toBe("CREATE_COMPLETE");
    });

    it("does not touch a name that another process has reserved", async () => {
      const mine = freshStack(aws());
      await mine.deploy();
      const [changeSet] = scripted(mine)!.changeSets.values();
      const stack = freshStack(aws());
      const theirs = aws().cloudFormation.putStack(stack.stack, { status: "REVIEW_IN_PROGRESS" });
      theirs.changeSets.set("theirs", { ...changeSet!, name: "theirs" });
      await expect(deleteStack(getPlace(stack))).rejects.toThrow("not created by zae-limiter");
      theirs.changeSets.clear();
      expect((await deleteStack(getPlace(stack))).outcome).toBe("deleted");
    });

    it("explains a deletion that fails, and can be run again", async () => {
      const stack = freshStack(aws());
      await stack.deploy();
      aws().cloudFormation.failAt("AggregatorDLQ", "It is in use");
      const error = await deleteStack(getPlace(stack)).catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(StackOperationError);
      expect(String(error)).toMatch(/its deletion failed at AggregatorDLQ .*: It is in use\./);
      await expect(stack.deploy()).rejects.toThrow(/DELETE_FAILED.*zae-limiter delete/);
      expect((await deleteStack(getPlace(stack))).outcome).toBe("deleted");
    });
  });
});
