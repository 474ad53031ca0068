// What AWS refuses, in one sentence each, and nothing is left half done.
import { StackAlreadyExistsError } from "zae-limiter";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { deployStack } from "../src/index.ts";
import { AwsError } from "./support/scripted-aws/aws-call.ts";
import { describeWithAws } from "./support/describe-with-aws.ts";
import { freshStack, getPlace } from "./support/deployment.ts";

describeWithAws("deployStack", (aws) => {
  it.each([
    ["sts:GetCallerIdentity"],
    ["cloudformation:DescribeStacks"],
    ["cloudformation:CreateChangeSet"],
    ["s3:PutObject"],
    ["cloudformation:ExecuteChangeSet"],
  ])(
    "names %s if that is denied, and leaves no stack behind that did not exist",
    async (action) => {
      const stack = freshStack(aws());
      aws().s3.buckets.clear();
      aws().faults.deny(action);
      await expect(stack.deploy()).rejects.toMatchObject({
        code: "ERR_LIMITER_PERMISSION_DENIED",
        message: expect.stringContaining(`AWS denied ${action}: allow it`),
      });
      await aws().cloudFormation.advance(stack.stack);
      expect(aws().cloudFormation.stack(stack.stack)).toBeUndefined();
    },
  );

  it.each(["expired", "invalid-token"] as const)("says that credentials are %s", async (fault) => {
    aws().faults.always("*", fault);
    await expect(freshStack(aws()).deploy()).rejects.toMatchObject({
      code: "ERR_LIMITER_NO_CREDENTIALS",
      message: expect.stringContaining("AWS does not accept the credentials"),
    });
  });

  it("says what CloudFormation refuses", async () => {
    const text = "Requires capabilities : [CAPABILITY_NAMED_IAM]";
    aws().faults.next("CreateChangeSet", new AwsError("InsufficientCapabilitiesException", text));
    await expect(freshStack(aws()).deploy()).rejects.toMatchObject({
      code: "ERR_LIMITER_STACK_OPERATION",
      message: expect.stringContaining(`AWS refused cloudformation:CreateChangeSet: ${text}`),
    });
  });

  it("continues in a name that its own interrupted run has taken, and in no other", async () => {
    const stack = freshStack(aws());
    aws().faults.always("ExecuteChangeSet", "unavailable");
    aws().faults.always("DeleteChangeSet", "unavailable");
    await expect(stack.deploy()).rejects.toMatchObject({ code: "ERR_LIMITER_STACK_OPERATION" });
    aws().faults.clear();
    expect(aws().cloudFormation.stack(stack.stack)?.status).toBe("REVIEW_IN_PROGRESS");
    expect((await stack.deploy()).outcome).toBe("created");

    const other = freshStack(aws());
    const taken = aws().cloudFormation.putStack(other.stack, { status: "REVIEW_IN_PROGRESS" });
    const [mine] = aws().cloudFormation.stack(stack.stack)!.changeSets.values();
    taken.changeSets.set("theirs", { ...mine!, name: "theirs" });
    await expect(other.deploy()).rejects.toBeInstanceOf(StackAlreadyExistsError);
  });

  it.each([
    ["that does not exist", undefined, /codeBucket: does not exist/],
    ["in another region", { region: "us-east-1" }, /codeBucket: is not in eu-west-1/],
    [
      "of another account, which may share it",
      { owner: "111122223333", isShared: true },
      /AWS denied s3:ListBucket on code-/,
    ],
  ])("refuses a bucket %s", async (_, bucket, message) => {
    const stack = freshStack(aws());
    const codeBucket = `code-${stack.stack}`;
    if (bucket !== undefined) aws().s3.create(codeBucket, bucket);
    await expect(stack.deploy({ codeBucket })).rejects.toThrow(message);
    await aws().cloudFormation.advance(stack.stack);
    expect(aws().cloudFormation.stack(stack.stack)).toBeUndefined();
  });

  it("keeps the bucket that a stack has, and uploads unchanged code once", async () => {
    const stack = freshStack(aws());
    const codeBucket = `code-${stack.stack}`;
    aws().s3.create(codeBucket);
    await stack.deploy({ codeBucket });
    const uploads = aws().getSeen("PutObject").length;
    await stack.deploy({ stackOptions: { logRetentionDays: 7 } });
    const { parameters } = aws().cloudFormation.stack(stack.stack)!.target!;
    expect(parameters["CodeBucket"]).toBe(codeBucket);
    expect(aws().getSeen("PutObject")).toHaveLength(uploads);
  });

  it("says that an endpoint does not answer", async () => {
    const place = { ...getPlace(freshStack(aws())), endpointUrl: "http://127.0.0.1:1" };
    await expect(deployStack(place)).rejects.toMatchObject({
      code: "ERR_LIMITER_UNAVAILABLE",
      message: expect.stringMatching(/^http:\/\/127\.0\.0\.1:1 did not answer sts:/),
    });
  });
});

describe("on a machine without settings", () => {
  beforeEach(() => {
    for (const name of Object.keys(process.env).filter((variable) => variable.startsWith("AWS_")))
      vi.stubEnv(name, undefined);
    vi.stubEnv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null");
    vi.stubEnv("AWS_CONFIG_FILE", "/dev/null");
    vi.stubEnv("AWS_EC2_METADATA_DISABLED", "true");
  });
  afterEach(() => void vi.unstubAllEnvs());

  it("says that there is no region, or no credentials", async () => {
    await expect(deployStack({ stack: "limits" })).rejects.toMatchObject({
      code: "ERR_LIMITER_NO_REGION",
      message: expect.stringContaining("set AWS_REGION"),
    });
    await expect(deployStack({ stack: "limits", region: "eu-west-1" })).rejects.toMatchObject({
      code: "ERR_LIMITER_NO_CREDENTIALS",
      message: expect.stringContaining("set AWS_ACCESS_KEY_ID"),
    });
  });

  it.each([
    [{ stack: "1st" }, "stack"],
    [{ stack: "x".repeat(56) }, "stack"],
    [{ region: "eu west" }, "region"],
    [{ endpointUrl: "localhost" }, "endpointUrl"],
    [{ account: "1" }, "account"],
    [{ codeBucket: "B" }, "codeBucket"],
    [{ stackOptions: { lambdaMemoryMb: 1 } }, "lambdaMemoryMb"],
    [{ stackOptions: { lambdaMemory: 256 } as never }, "stackOptions"],
  ])("refuses %o", async (options, field) => {
    await expect(deployStack(options)).rejects.toMatchObject({ name: "ValidationError" });
    await expect(deployStack(options)).rejects.toThrow(new RegExp(`${field}|lambdaMemory`));
  });
});
