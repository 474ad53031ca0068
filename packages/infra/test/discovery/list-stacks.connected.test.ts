import { PermissionDenied, RateLimiterUnavailable, VERSION } from "zae-limiter";
import { afterEach, beforeAll, expect, it } from "vitest";
import { listStacks, type StackSummary } from "../../src/index.ts";
import { OUR_TAGS } from "../support/deployed-stack.ts";
import { describeWithAws } from "../support/describe-with-aws.ts";

describeWithAws("the list of stacks", (aws) => {
  beforeAll(() => {
    const { cloudFormation } = aws();
    cloudFormation.putStack("zebra", { tags: OUR_TAGS, status: "UPDATE_ROLLBACK_COMPLETE" });
    cloudFormation.putStack("foreign", { tags: { ManagedBy: "terraform", team: "a" } });
    cloudFormation.putStack("untagged");
    cloudFormation.putStack("load", { tags: { ...OUR_TAGS, "zae-limiter:type": "load-test" } });
    cloudFormation.putStack("ZAEL-legacy");
    cloudFormation.putStack("alpha", {
      tags: { ...OUR_TAGS, "zae-limiter:lambda-version": "0.0.9", team: "a" },
    });
    cloudFormation.putStack("elsewhere", { tags: OUR_TAGS, region: "us-east-1" });
  });
  afterEach(() => {
    aws().cloudFormation.pageSize = 100;
  });

  const list = (): Promise<readonly StackSummary[]> =>
    listStacks({ region: "eu-west-1", endpointUrl: aws().endpointUrl });

  it("has our stacks of the region by name, and no other", async () => {
    const stacks = await list();
    expect(stacks.map(({ stack }) => stack)).toEqual(["ZAEL-legacy", "alpha", "zebra"]);
    expect(stacks[1]).toEqual({
      stack: "alpha",
      status: "CREATE_COMPLETE",
      version: VERSION,
      lambdaVersion: "0.0.9",
      createdAt: expect.any(Date),
    });
    expect(stacks[2]).toMatchObject({ status: "UPDATE_ROLLBACK_COMPLETE" });
  });

  it("reads every page, with one request for each and none for a single stack", async () => {
    aws().cloudFormation.pageSize = 2;
    const before = aws().seen.length;
    expect(await list()).toHaveLength(3);
    expect(
      aws()
        .seen.slice(before)
        .map(({ action }) => action),
    ).toEqual(["DescribeStacks", "DescribeStacks", "DescribeStacks"]);
  });

  it("says which permission is missing, or that nothing answers", async () => {
    aws().faults.deny("cloudformation:DescribeStacks");
    await expect(list()).rejects.toThrow(PermissionDenied);
    await expect(list()).rejects.toThrow("cloudformation:DescribeStacks");
    const nowhere = listStacks({ region: "eu-west-1", endpointUrl: "http://127.0.0.1:1" });
    await expect(nowhere).rejects.toThrow(RateLimiterUnavailable);
  });
});
