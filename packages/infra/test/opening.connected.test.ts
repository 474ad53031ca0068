/*
 * What an application does with `DynamoRepository.open`: from an empty account to a stack, once,
 * however many start together; and what it says if it may not.
 */
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import * as infra from "@zae-limiter/infra";
import { afterEach, describe, expect, it, vi } from "vitest";
import { Limit, RateLimiter, VERSION } from "zae-limiter";
import { DynamoRepository, type DynamoOptions } from "zae-limiter/dynamodb";
import { openRepository } from "zae-limiter/open";
import type { StackTools } from "../../limiter/src/repository/dynamodb/opening/stack-tools.ts";
import { freshTableName } from "../../limiter/test/support/engine.ts";
import { describeWithAws } from "./support/describe-with-aws.ts";

const root = fileURLToPath(new URL("../../..", import.meta.url));

it("the package has what the library asks of it", () => {
  const tools: StackTools = infra;
  expect(tools).toMatchObject({ ensureStack: expect.any(Function) });
});

describeWithAws("opening a stack", (aws) => {
  afterEach(() => {
    vi.unstubAllEnvs();
    vi.restoreAllMocks();
  });

  const getPlace = (stack = freshTableName()): DynamoOptions & { readonly stack: string } => ({
    stack,
    region: "eu-west-1",
    endpointUrl: aws().endpointUrl,
    provisioning: "stack",
  });

  /** What was asked of services other than DynamoDB since a request. */
  const askedSince = (start: number): readonly string[] =>
    aws()
      .seen.slice(start)
      .filter(({ service }) => service !== "dynamodb")
      .map(({ action }) => action);

  /** What became of the stack as a whole. */
  const listStates = (stack: string): readonly string[] =>
    aws()
      .cloudFormation.stack(stack)!
      .events.filter(({ logicalId }) => logicalId === stack)
      .map(({ status }) => status)
      .filter((status) => /^(?:CREATE|UPDATE)/.test(status));

  it("deploys it from nothing, opens it the next time without asking, and deletes it", async () => {
    const place = getPlace();
    await using first = await DynamoRepository.open("my-team", place);
    await first.setSystemDefaults([Limit.perMinute("rpm", 2)]);
    const limiter = new RateLimiter({ repository: first });
    const call = { entityId: "key-1", resource: "gpt-4", consume: { rpm: 1 } };
    expect(await limiter.acquire(call, () => "done")).toBe("done");
    expect((await first.listNamespaces()).map(({ name }) => name)).toEqual(["default", "my-team"]);
    expect(await first.getVersionRecord()).toMatchObject({ lambdaVersion: VERSION });

    const start = aws().seen.length;
    await using again = await DynamoRepository.open("my-team", place);
    expect(again.namespaceId).toBe(first.namespaceId);
    await using other = await DynamoRepository.open("other", place);
    expect(other.namespaceName).toBe("other");
    expect(askedSince(start)).toEqual([]);

    vi.stubEnv("ZAEL_STACK", place.stack);
    vi.stubEnv("AWS_REGION", "eu-west-1");
    vi.stubEnv("AWS_ENDPOINT_URL", aws().endpointUrl);
    vi.stubEnv("AWS_ACCESS_KEY_ID", "key");
    vi.stubEnv("AWS_SECRET_ACCESS_KEY", "secret");
    const readme = readFileSync(`${root}README.md`, "utf8");
    expect(readme).toContain('`await DynamoRepository.open("my-team")`');
    await using asInReadme = await DynamoRepository.open("my-team");
    expect(asInReadme.namespaceId).toBe(first.namespaceId);

    await first.deleteStack();
    expect(await first.ping()).toBe(false);
  });

  it("deploys it once, however many processes start together, and all of them go on", async () => {
    const place = getPlace();
    const names = ["one", "two", "three"];
    const ends = await Promise.all(names.map((name) => openedByProcess(name, place)));
    expect(ends).toEqual(names.map((name) => `${name} opened`));
    expect(listStates(place.stack).toSorted()).toEqual(["CREATE_COMPLETE", "CREATE_IN_PROGRESS"]);
    await using repository = await DynamoRepository.open("one", place);
    expect((await repository.listNamespaces()).map(({ name }) => name)).toEqual(
      ["default", ...names].toSorted(),
    );
    expect(await repository.getVersionRecord()).toMatchObject({ lambdaVersion: VERSION });
  });

  it("goes with the options that the builder was given, and updates its Lambda only if it is asked to [W-74]", async () => {
    const place = getPlace();
    const builder = (): ReturnType<typeof DynamoRepository.builder> =>
      DynamoRepository.builder().namespace("my-team").options(place);
    const start = aws().seen.length;
    await expect(builder().stackOptions({ lambdaMemoryMb: 1 }).build()).rejects.toMatchObject({
      code: "ERR_LIMITER_VALIDATION",
      field: "lambdaMemoryMb",
    });
    expect(askedSince(start)).toEqual([]);
    await using built = await builder().stackOptions({ lambdaMemoryMb: 512 }).build();
    expect(built.namespaceName).toBe("my-team");
    expect(aws().cloudFormation.stack(place.stack)!.target!.parameters["LambdaMemorySize"]).toBe(
      "512",
    );

    const { schemaVersion } = (await built.getVersionRecord())!;
    await built.setVersionRecord({ schemaVersion, lambdaVersion: "0.0.1" });
    const older = aws().seen.length;
    const warned = vi.spyOn(process, "emitWarning");
    await using unasked = await DynamoRepository.open("my-team", { ...place, lambda: "ignore" });
    expect(askedSince(older)).toEqual([]);
    const asked = { ...place, updateLambda: true, lambda: "must-match" } as const;
    await using updated = await DynamoRepository.open("my-team", asked);
    expect(askedSince(older)).not.toEqual([]);
    expect(await updated.getVersionRecord()).toMatchObject({ lambdaVersion: VERSION });
    const newer = aws().seen.length;
    await using current = await DynamoRepository.open("my-team", asked);
    expect(current.namespaceId).toBe(unasked.namespaceId);
    expect(askedSince(newer)).toEqual([]);
    expect(warned.mock.calls.map(([, options]) => options)).not.toContainEqual({
      code: "WARN_LIMITER_LAMBDA_OLDER",
    });
  });

  it("goes on after a first deployment was rolled back under it, and repeated, without a restart", async () => {
    const place = getPlace();
    const { stack } = place;
    const call = { entityId: "key-1", resource: "gpt-4", consume: { rpm: 1 } };
    const limits = [Limit.perMinute("rpm", 2)];
    const { cloudFormation } = aws();
    const isThere = (): boolean =>
      cloudFormation
        .stack(stack)!
        .events.some(
          ({ type, status }) => type === "AWS::DynamoDB::Table" && status === "CREATE_COMPLETE",
        );
    cloudFormation.failAt("AggregatorRole", "No permission to create a role");
    await infra.deployStack({ ...place, wait: false });
    for (let step = 0; step < 100 && !isThere(); step += 1) await cloudFormation.advance(stack, 1);

    await using early = await DynamoRepository.open("my-team", place);
    await early.setSystemDefaults(limits);
    const limiter = new RateLimiter({ repository: early });
    await (await limiter.acquire(call)).commit();
    expect(listStates(stack)).toEqual(["CREATE_IN_PROGRESS"]);

    await cloudFormation.advance(stack);
    const start = aws().seen.length;
    for (let attempt = 0; attempt < 2; attempt += 1)
      await expect(limiter.acquire(call)).rejects.toMatchObject({
        code: "ERR_LIMITER_INFRASTRUCTURE_NOT_FOUND",
        message: expect.stringMatching(/is gone, .* rolled back\. Deploy or create it again/),
      });
    // A program that is running deploys nothing.
    expect(askedSince(start)).toEqual([]);

    await infra.deployStack({ ...place, confirm: () => true });
    await using restarted = await DynamoRepository.open("my-team", place);
    await restarted.setSystemDefaults(limits);
    await (await limiter.acquire(call)).commit();
    expect(early.namespaceId).toBe(restarted.namespaceId);
    const other = new RateLimiter({ repository: restarted });
    expect(await other.available("key-1", "gpt-4")).toEqual({ rpm: 1 });
  });

  it("leaves a table alone that has no stack when it is to delete that", async () => {
    await using alone = await DynamoRepository.open("my-team", {
      ...getPlace(),
      provisioning: "table",
    });
    await alone.deleteStack();
    expect(await alone.ping()).toBe(true);
    await alone.deleteTable();
  });

  it("deploys nothing for a URL with `create: false`", async () => {
    const { stack, endpointUrl } = getPlace();
    const url = `dynamodb://eu-west-1/${stack}?endpoint=${encodeURIComponent(endpointUrl!)}&provisioning=stack`;
    const start = aws().seen.length;
    await expect(openRepository(url, { create: false })).rejects.toMatchObject({
      code: "ERR_LIMITER_INFRASTRUCTURE_NOT_FOUND",
    });
    expect(askedSince(start)).toEqual([]);
  });

  describe("says in one sentence what to do, and leaves nothing behind", () => {
    it("if DynamoDB itself is denied", async () => {
      aws().faults.always("BatchGetItem", "deny");
      const start = aws().seen.length;
      await expect(DynamoRepository.open("my-team", getPlace())).rejects.toMatchObject({
        code: "ERR_LIMITER_PERMISSION_DENIED",
        message: expect.stringContaining("AWS denied dynamodb:BatchGetItem on table"),
      });
      expect(askedSince(start)).toEqual([]);
    });
  });
});

/** Opens a repository in a process of its own, with the built packages; returns what it prints. */
async function openedByProcess(name: string, place: DynamoOptions): Promise<string> {
  const program = `import { DynamoRepository } from "zae-limiter/dynamodb";
    const [name, place] = process.argv.slice(1);
    const repository = await DynamoRepository.open(name, JSON.parse(place));
    console.log(repository.namespaceName, "opened");
    await repository.close();`;
  const args = ["--input-type=module", "-e", program, name, JSON.stringify(place)];
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: root });
  return stdout.trim();
}
