// `deploy` and `delete` on a scripted AWS.
import { expect, it } from "vitest";
import { describeWithAws } from "../../infra/test/support/describe-with-aws.ts";
import { freshTableName } from "../../limiter/test/support/engine.ts";
import { readJson, zaeLimiter, type Outcome, type Setup } from "./command-line.ts";

async function run(line: string, setup: Setup = {}): Promise<Outcome> {
  return zaeLimiter(line, { env: {}, ...setup });
}

describeWithAws("deploy and delete", (aws) => {
  const freshPlace = () => {
    const stack = freshTableName();
    return {
      stack,
      place: `--stack ${stack} --region eu-west-1 --endpoint-url ${aws().endpointUrl}`,
    };
  };
  const readParameters = (stack: string) => aws().cloudFormation.stack(stack)?.target?.parameters;

  it("shows what will change, follows the events and says what was done", async () => {
    const { stack, place } = freshPlace();
    const created = await run(`deploy ${place} --no-alarms --lambda-memory 512 --tag team=search`);
    expect(created).toMatchObject({ code: 0 });
    expect(created.stderr).toContain("add     RateLimitsTable");
    expect(created.stderr).toContain(`CREATE_COMPLETE  ${stack} (AWS::CloudFormation::Stack)`);
    expect(created.stdout).toBe(
      `Stack    ${stack}\nRegion   eu-west-1\nAccount  ${aws().account}\n` +
        `Outcome  created\nTable    ${stack}\n`,
    );
    expect(readParameters(stack)).toMatchObject({ EnableAlarms: "false", LambdaMemorySize: "512" });

    const planned = await run(`deploy ${place} --log-retention-days 7 --dry-run`);
    expect(planned.stdout).toMatch(/change {2}AggregatorLogGroup .* RetentionInDays/);
    expect(readParameters(stack)).toMatchObject({ LogRetentionDays: "30" });
    expect(await readJson(`deploy ${place}`, { env: {} })).toMatchObject({
      outcome: "unchanged",
      changes: [],
    });
  });

  it("asks before it removes, and refuses where it cannot ask", async () => {
    const { stack, place } = freshPlace();
    await run(`deploy ${place}`);
    const refused = await run(`deploy ${place} --no-alarms`);
    expect(refused.code).toBe(2);
    expect(refused.stderr).toMatch(/This replaces or removes .*\. Go on\? .*Pass --yes to confirm/);
    const declined = await run(`deploy ${place} --no-alarms`, { typed: "n\n" });
    expect(declined).toMatchObject({ code: 1 });
    expect(readParameters(stack)).toMatchObject({ EnableAlarms: "true" });
    // Only the change set of the first deployment is left.
    expect(aws().cloudFormation.stack(stack)?.changeSets.size).toBe(1);
    expect(await run(`deploy ${place} --no-alarms --yes`)).toMatchObject({ code: 0 });
    expect(readParameters(stack)).toMatchObject({ EnableAlarms: "false" });
  });

  it("deletes a stack and keeps its table, unless --with-data is passed", async () => {
    const { stack, place } = freshPlace();
    await run(`deploy ${place}`);
    expect((await run(`delete ${place}`)).code).toBe(2);
    const kept = await run(`delete ${place} --yes`);
    expect(kept).toMatchObject({ code: 0 });
    expect(kept.stdout).toContain("The table is kept with everything in it.");
    expect(aws().cloudFormation.stack(stack)).toBeUndefined();
    // Also a deletion that was interrupted before the table was deleted ends here.
    const report = await readJson(`delete ${place} --with-data --yes`, { env: {} });
    expect(report).toMatchObject({ outcome: "deleted" });
    expect(await readJson(`delete ${place} --with-data --yes`, { env: {} })).toMatchObject({
      outcome: "absent",
    });
  });

  it("says after Ctrl-C that AWS continues, and how to go on", async () => {
    const { stack, place } = freshPlace();
    let interrupt: (() => void) | undefined;
    aws().cloudFormation.stepsPerLook = 0;
    const running = run(`deploy ${place}`, { onListening: (listener) => (interrupt = listener) });
    await expect
      .poll(() => aws().cloudFormation.stack(stack)?.status, { timeout: 15_000 })
      .toBe("CREATE_IN_PROGRESS");
    interrupt?.();
    const { code, stderr } = await running;
    aws().cloudFormation.stepsPerLook = 40;
    expect(code).toBe(1);
    expect(stderr).toContain(`to continue: zae-limiter deploy --stack ${stack}`);
    expect(await run(`deploy ${place}`)).toMatchObject({ code: 0 });
    expect(aws().cloudFormation.stack(stack)?.status).toBe("CREATE_COMPLETE");
  });

  it.each([
    ["--lambda-timeout 901", "--lambda-timeout must be a whole number from 1 to 900 (got '901')."],
    ["--bucket-ttl-multiplier -1", "It must be a whole number."],
    ["--no-iam --create-iam-roles", "--create-iam-roles creates roles, which --no-iam forbids"],
    ["--enable-alarms --no-alarms", "--enable-alarms and --no-alarms contradict each other"],
    ["--tag nothing", "A tag is written key=value"],
    ["--billing-mode on-demand --read-capacity 5", "--read-capacity has no effect on demand"],
  ])("refuses %s before anything is sent", async (flags, message) => {
    const before = aws().seen.length;
    const { place } = freshPlace();
    const { code, stderr } = await run(`deploy ${place} ${flags}`);
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining(message) });
    expect(aws().seen).toHaveLength(before);
  });

  it.each([
    ["wrong account", "--account 111122223333", "ERR_LIMITER_WRONG_ACCOUNT"],
    [
      "role of another account",
      "--aggregator-role-arn arn:aws:iam::111122223333:role/a",
      "ERR_LIMITER_WRONG_ACCOUNT",
    ],
  ])("refuses the %s", async (_, flags, code) => {
    const { place, stack } = freshPlace();
    const outcome = await run(`deploy ${place} ${flags} --json`);
    expect(outcome.code).toBe(1);
    expect(JSON.parse(outcome.stderr)).toMatchObject({ error: { code } });
    expect(aws().cloudFormation.stack(stack)).toBeUndefined();
  });
});
