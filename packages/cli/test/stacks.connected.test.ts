// The verbs that look at stacks, on the scripted AWS.
import { DynamoRepository } from "zae-limiter/dynamodb";
import { openRepository } from "zae-limiter/open";
import { beforeAll, expect, it } from "vitest";
import { deployedStack, OUR_TAGS } from "../../infra/test/support/deployed-stack.ts";
import { describeWithAws } from "../../infra/test/support/describe-with-aws.ts";
import { describeWithEngine, freshTableName } from "../../limiter/test/support/engine.ts";
import { zaeLimiter, type Outcome } from "./command-line.ts";

/** Without a repository: these verbs need none. */
function run(line: string, env: Readonly<Record<string, string>> = {}): Promise<Outcome> {
  return zaeLimiter(line, { open: openRepository, env: { ZAEL_REPOSITORY: "", ...env } });
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

  it("says in one sentence what it may not, and exits 1", async () => {
    aws().faults.deny("cloudformation:DescribeStacks");
    const { code, stdout, stderr } = await list();
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr).toMatch(/^error: AWS denied cloudformation:DescribeStacks: .*\n$/);
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
  const status = (name = stack, options = ""): Promise<Outcome> =>
    run(`status${place(name)}${options}`);

  it("shows its sections, and exits 0 when it is healthy", async () => {
    const { code, stdout, stderr } = await status();
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout.match(/^\w+$/gm)).toEqual([
      "Connectivity",
      "Infrastructure",
      "Table",
      "Aggregator",
      "Provisioner",
      "Versions",
      "Roles",
      "Alarms",
    ]);
    expect(stdout).toMatch(/^ {2}Reachable +yes, in \d+ ms$/m);
    expect(stdout).toContain(`  Stack        ${stack}, CREATE_COMPLETE\n`);
    expect(stdout).toContain(`  State          enabled: the function ${stack}-aggregator counts\n`);
    expect(stdout).toMatch(new RegExp(`^ {2}AggregatorRole +${stack}-aggr$`, "m"));
    expect(stdout).toMatch(new RegExp(`^ {2}${stack}-aggregator-dlq-alarm +OK$`, "m"));
  });

  it("prints the same for programs", async () => {
    const { code, stdout } = await status(stack, " --json");
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      reachable: true,
      table: stack,
      dataVersion: "1.0.0",
      deployment: { stack, problems: [], aggregator: { state: "enabled" } },
    });
  });

  it("exits 1 when the aggregator is broken, and says why [W-78]", async () => {
    const mapping = [...aws().lambda.mappings.values()][0]!;
    const { LastProcessingResult } = mapping;
    mapping["LastProcessingResult"] = "PROBLEM: Function call failed";
    const { code, stdout } = await status();
    mapping["LastProcessingResult"] = LastProcessingResult;
    expect(code).toBe(1);
    expect(stdout).toContain(
      "Problems\n  The aggregator is broken: the event source mapping has a problem: Function call failed\n",
    );
  });

  it("exits 0 with a warning when an alarm goes off", async () => {
    const alarm = aws().cloudWatch.alarms.get(`${stack}-aggregator-dlq-alarm`)!;
    alarm.StateValue = "ALARM";
    const { code, stdout } = await status();
    alarm.StateValue = "OK";
    expect(code).toBe(0);
    expect(stdout).toMatch(new RegExp(`\nWarnings\n {2}Alarm ${stack}-aggregator-dlq-alarm\n$`));
  });

  it("exits 1 when an operation on the stack failed, and 0 when only a part may not be seen", async () => {
    const deployed = aws().cloudFormation.stack(stack)!;
    deployed.status = "UPDATE_ROLLBACK_FAILED";
    expect((await status()).code).toBe(1);
    deployed.status = "CREATE_COMPLETE";
    aws().faults.deny("cloudwatch:DescribeAlarms");
    const { code, stdout } = await status();
    expect(code).toBe(0);
    expect(stdout).toContain("Alarms\n  unknown: AWS denied cloudwatch:DescribeAlarms: ");
  });

  it("is one sentence, and exit 1, where there is nothing, no permission, or no answer", async () => {
    const name = freshTableName();
    const missing = await status(name);
    expect(missing.code).toBe(1);
    expect(missing.stdout).toContain(`no: Neither a stack nor a table ${name} exists`);
    aws().faults.always("*", "deny");
    const denied = await status();
    expect(denied.code).toBe(1);
    expect(denied.stdout).toMatch(/^Reachable +no: .*dynamodb:BatchGetItem/m);
    const nowhere = await run("status --stack s --endpoint-url http://127.0.0.1:1");
    expect(nowhere.code).toBe(1);
    expect(nowhere.stdout).toMatch(/^Reachable +no: .*127\.0\.0\.1:1/m);
    for (const { stdout } of [missing, denied, nowhere]) expect(stdout).not.toContain("Alarms");
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
