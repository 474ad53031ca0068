// `version`, `check` and `upgrade` on a scripted AWS.
import { VERSION } from "zae-limiter";
import { DynamoRepository } from "zae-limiter/dynamodb";
import { expect, it } from "vitest";
import { describeWithAws } from "../../infra/test/support/describe-with-aws.ts";
import { freshStack, getPlace } from "../../infra/test/support/deployment.ts";
import { freshTableName } from "../../limiter/test/support/engine.ts";
import {
  listItems,
  loadPythonTable,
  pythonTable,
} from "../../upgrade/test/support/python-table.ts";
import { openTransport } from "../../limiter/test/support/transports.ts";
import { readJson, zaeLimiter, type Outcome } from "./command-line.ts";

const SETUP = { env: { ZAEL_REPOSITORY: "" } };

async function run(line: string): Promise<Outcome> {
  return zaeLimiter(line, SETUP);
}

describeWithAws("version, check and upgrade", (aws) => {
  const flags = (stack: string): string =>
    `--stack ${stack} --region eu-west-1 --endpoint-url ${aws().endpointUrl}`;

  it("say what a stack has, and bring its Lambda up to date", async () => {
    const stack = freshStack(aws());
    await stack.deploy();
    const place = flags(stack.stack);
    expect(await readJson(`version ${place}`, SETUP)).toEqual({
      clientVersion: VERSION,
      schemaVersion: "1.0.0",
      lambdaVersion: VERSION,
      clientMinVersion: "0.0.0",
    });
    expect(await run(`check ${place}`)).toMatchObject({ code: 0 });
    expect(await readJson(`upgrade ${place}`, SETUP)).toMatchObject({
      migrations: [],
      stack: { outcome: "unchanged" },
    });

    const open = { ...getPlace(stack), provisioning: "never" } as const;
    await using repository = await DynamoRepository.open("default", open);
    await repository.setVersionRecord({ schemaVersion: "1.0.0", lambdaVersion: "0.0.1" });
    const checked = await run(`check ${place}`);
    expect(checked.code).toBe(0);
    expect(checked.stdout).toContain("zae-limiter upgrade --lambda-only");
    expect((await run(`upgrade ${place} --lambda-only`)).stdout).toBe(
      `The Lambda has version ${VERSION}.\n`,
    );
  });

  it("refuse to update a stack of the Python zae-limiter, and say what to do instead", async () => {
    const stack = freshStack(aws());
    await stack.deploy();
    const open = { ...getPlace(stack), provisioning: "never" } as const;
    await using repository = await DynamoRepository.open("default", open);
    await repository.setVersionRecord({ schemaVersion: "0.10.0" });
    const executions = aws().getSeen("ExecuteChangeSet").length;
    for (const more of ["--yes", "--yes --force", "--lambda-only", "--dry-run"]) {
      const refused = await run(`upgrade ${flags(stack.stack)} ${more}`);
      expect(refused).toMatchObject({ code: 1, stdout: "" });
      expect(refused.stderr).toContain(`upgrade --stack ${stack.stack} --into NEW`);
    }
    expect(aws().getSeen("ExecuteChangeSet")).toHaveLength(executions);
  });

  it("write nothing unless an upgrade is agreed to [W-67]", async () => {
    const transport = await openTransport("SDK's", aws());
    const stack = await loadPythonTable(transport, pythonTable("0.10.3"));
    const before = await listItems(transport, stack);
    expect(await run(`check ${flags(stack)}`)).toMatchObject({ code: 1 });
    expect(await run(`version ${flags(stack)}`)).toMatchObject({ code: 0 });
    const unasked = await run(`upgrade ${flags(stack)}`);
    expect(unasked.code).not.toBe(0);
    expect(unasked.stderr).toContain("--yes");
    const declined = await zaeLimiter(`upgrade ${flags(stack)}`, { ...SETUP, typed: "n\n" });
    expect(declined).toMatchObject({ code: 1 });
    expect(await listItems(transport, stack)).toEqual(before);
    const missing = freshTableName();
    for (const verb of ["check", "version", "upgrade"])
      expect(await run(`${verb} ${flags(missing)}`)).toMatchObject({ code: 1, stdout: "" });
    expect(await run(`upgrade ${flags(stack)} --lambda-only --into x`)).toMatchObject({ code: 2 });
    expect(await run(`upgrade ${flags(stack)} --snapshot-windows weekly`)).toMatchObject({
      code: 2,
    });
    transport.close();
  });
});
