// The verbs that look at stacks, on the scripted AWS.
import { DynamoRepository } from "zae-limiter/dynamodb";
import { openRepository } from "zae-limiter/open";
import { beforeAll, expect, it } from "vitest";
import { deployedStack, OUR_TAGS } from "../../infra/test/support/deployed-stack.ts";
import { describeWithAws } from "../../infra/test/support/describe-with-aws.ts";
import { describeWithEngine, freshTableName } from "../../limiter/test/support/engine.ts";
import { zaeLimiter, type Outcome } from "./command-line.ts";

/** Soon after the scripted AWS has deployed a stack. */
const SOON_MS = Date.parse("2026-01-01T00:05:00Z");

/** Without a repository: these verbs need none. */
function run(line: string, nowMs = SOON_MS): Promise<Outcome> {
  const env = { ZAEL_REPOSITORY: "" };
  return zaeLimiter(line, { open: openRepository, env, nowMs: () => nowMs });
}

describeWithAws("list", (aws) => {
  const list = (options = ""): Promise<Outcome> =>
    run(`list --region eu-west-1 --endpoint-url ${aws().endpointUrl}${options}`);

  it("shows each stack and how many there are", async () => {
    const { cloudFormation } = aws();
    expect((await list()).stdout).toBe("No stacks. To deploy one: zae-limiter deploy\n");
    cloudFormation.putStack("zae-limiter", { tags: OUR_TAGS });
    cloudFormation.putStack("foreign");
    expect(await list()).toEqual({
      code: 0,
      stderr: "",
      stdout: expect.stringMatching(
        /^Name +Status +Version +Created\nzae-limiter +CREATE_COMPLETE +\d+\.\d+\.\d+ +2026-01-01 [\d:]+Z\n1 stack\n$/,
      ),
    });
    cloudFormation.putStack("b", { tags: OUR_TAGS, status: "UPDATE_IN_PROGRESS" });
    cloudFormation.putStack("c", { tags: OUR_TAGS, status: "UPDATE_ROLLBACK_IN_PROGRESS" });
    cloudFormation.putStack("d", { tags: OUR_TAGS, status: "CREATE_FAILED" });
    expect((await list()).stdout).toMatch(/\n4 stacks, 1 in progress, 2 failed or rolled back\n$/);
    expect(JSON.parse((await list(" --json")).stdout)).toMatchObject([
      { stack: "b", status: "UPDATE_IN_PROGRESS", createdAt: expect.any(String) },
      { stack: "c" },
      { stack: "d" },
      { stack: "zae-limiter" },
    ]);
  });
});

describeWithAws("status of a stack", (aws) => {
  let stack: string;
  beforeAll(async () => {
    stack = await deployedStack(aws());
    const repository = await DynamoRepository.open(undefined, {
      stack,
      endpointUrl: aws().endpointUrl,
    });
    await repository.close();
  });

  const place = (name: string): string =>
    ` --stack ${name} --region eu-west-1 --endpoint-url ${aws().endpointUrl}`;
  const status = (name = stack, options = "", nowMs = SOON_MS): Promise<Outcome> =>
    run(`status${place(name)}${options}`, nowMs);

  it("shows its sections, and exits 0 when it is healthy", async () => {
    const { code, stdout, stderr } = await status();
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout.match(/^\w+$/gm)).toEqual([
      "Connectivity",
      "Infrastructure",
      "Table",
      "Aggregator",
      "Versions",
      "Functions",
      "Roles",
    ]);
    expect(stdout).toMatch(/^ {2}Reachable +yes, in \d+ ms$/m);
    expect(stdout).toContain(`  Stack        ${stack}, CREATE_COMPLETE\n`);
    // It was deployed a moment ago.
    const starting = `starting: the function ${stack}-aggregator has not counted yet`;
    expect(stdout).toContain(`  State          ${starting}\n`);
    expect(stdout).toMatch(new RegExp(`^ {2}AggregatorFunction +${stack}-aggregator$`, "m"));
    expect(stdout).toMatch(new RegExp(`^ {2}AggregatorRole +${stack}-aggr$`, "m"));
  });

  it("prints the same for programs", async () => {
    const { code, stdout } = await status(stack, " --json");
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      reachable: true,
      table: stack,
      dataVersion: "1.0.0",
      deployment: { stack, problems: [], aggregator: { state: "starting" } },
    });
  });

  it("exits 1 when the aggregator is broken, and says why [W-78]", async () => {
    const { code, stdout } = await status(stack, "", SOON_MS + 600_000);
    expect(code).toBe(1);
    expect(stdout).toContain(
      `Problems\n  The aggregator is broken: the function ${stack}-aggregator does not count: `,
    );
  });

  it("exits 1 when an operation on the stack failed, and 0 when only a part may not be seen", async () => {
    const deployed = aws().cloudFormation.stack(stack)!;
    deployed.status = "UPDATE_ROLLBACK_FAILED";
    expect((await status()).code).toBe(1);
    deployed.status = "CREATE_COMPLETE";
    aws().faults.deny("cloudformation:ListStackResources");
    const { code, stdout } = await status();
    expect(code).toBe(0);
    expect(stdout).toContain("Roles\n  unknown: AWS denied cloudformation:ListStackResources: ");
  });
});

describeWithEngine("status of a table on an engine", (engine) => {
  it("says that the engine has nothing else, and exits 0", async () => {
    const { endpointUrl } = engine();
    const place = `--stack ${freshTableName()} --endpoint-url ${endpointUrl}`;
    await run(`namespace register default ${place}`);
    const { code, stdout } = await run(`status ${place}`);
    expect(code).toBe(0);
    expect(stdout).toContain(`Infrastructure\n  unknown: ${endpointUrl} has no CloudFormation\n`);
    expect(stdout).toMatch(/^ {2}Indexes +GSI1, GSI2, GSI3, GSI4: ACTIVE$/m);
    expect(stdout).toMatch(/^ {2}Counted until +never; to start a runner: zae-limiter aggregate$/m);
  });
});
