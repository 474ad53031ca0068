import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { VERSION } from "zae-limiter";
import { openRepository } from "zae-limiter/open";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import {
  reply,
  startScriptedServer,
  type ScriptedServer,
} from "../../limiter/test/support/scripted-server.ts";
import { otherConnection } from "../../limiter/test/support/temporary-file.ts";
import { verbNames, zaeLimiter, type Outcome } from "./command-line.ts";

let server: ScriptedServer;
let folder: string;
let url: string;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "zae-limiter-names-"));
  url = `sqlite:${folder}/limits.db`;
  server = await startScriptedServer();
  server.answer = (outgoing) => reply(outgoing, {});
  vi.stubEnv("AWS_ENDPOINT_URL", server.endpointUrl);
  vi.stubEnv("AWS_REGION", "eu-west-1");
  vi.stubEnv("AWS_ACCESS_KEY_ID", "key");
  vi.stubEnv("AWS_SECRET_ACCESS_KEY", "secret");
});
afterEach(async () => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true });
  await server.stop();
});

const run = (line: string, env: Readonly<Record<string, string>> = {}): Promise<Outcome> =>
  zaeLimiter(line, { open: openRepository, env: { ZAEL_REPOSITORY: url, ...env } });

describe("a repository without a stack in ZAEL_REPOSITORY", () => {
  it.each(["delete --yes", "delete --yes --with-data", "deploy --yes", "upgrade --yes", "list"])(
    "is refused by %s, which asks AWS nothing",
    async (line) => {
      for (const repository of [url, "memory:"]) {
        const { code, stdout, stderr } = await run(line, { ZAEL_REPOSITORY: repository });
        expect([code, stdout]).toEqual([2, ""]);
        expect(stderr).toContain(`ZAEL_REPOSITORY is ${repository}, which has no stack.`);
      }
      expect(server.seen).toEqual([]);
      // A stack that is named is addressed.
      await run(`${line} --stack other --region eu-west-1`);
      expect(server.seen.length).toBeGreaterThan(0);
    },
  );

  it("has versions, and is checked", async () => {
    expect((await run("version")).code).toBe(1);
    await run("namespace register default");
    const version = await run("version");
    expect([version.code, version.stdout]).toEqual([
      0,
      `Client          ${VERSION}\nSchema          1\nLambda          none: nothing is deployed\nMinimum client  none\n`,
    ]);
    const check = await run("check");
    expect([check.code, check.stdout]).toEqual([
      0,
      `${url} has schema 1, which works with this client. It has no stack, so nothing is deployed.\n`,
    ]);
    const json = await run("check --json --repository memory:");
    expect(JSON.parse(json.stdout)).toMatchObject({ clientVersion: VERSION, state: "compatible" });
    expect(server.seen).toEqual([]);
  });

  it("is checked: one of a later version fails", async () => {
    await run("namespace register default");
    (await otherConnection(`${folder}/limits.db`)).exec("PRAGMA user_version = 99");
    const check = await run("check --json");
    expect(check.code).toBe(1);
    expect(JSON.parse(check.stdout)).toMatchObject({
      schemaVersion: "99",
      state: "schema too new",
    });
    expect((await run("version")).stdout).toContain("Schema          99\n");
  });
});

describe("--name", () => {
  const env = { ZAEL_REPOSITORY: "" };

  it("is --stack for every verb that has no name of its own", async () => {
    const own = new Set(["entity create", "entity ensure", "entity update"]);
    for (const verb of verbNames()) {
      const { stdout } = await run(`${verb} --help`);
      expect(stdout.includes("--name <name>"), verb).toBe(own.has(verb));
      expect(stdout, verb).not.toContain("--name <stack>");
      if (!own.has(verb)) expect((await run(`${verb} --name`)).stderr, verb).toContain("missing");
    }
    for (const line of [
      "deploy --yes",
      "delete --yes",
      "status",
      "check",
      "upgrade --yes",
      "version",
    ])
      for (const option of ["--name", "--stack"])
        expect((await run(`${line} ${option} my_stack`, env)).stderr, line).toContain("'my_stack'");
    expect((await run("check --name one --stack two", env)).stderr).toContain("Two stacks");
    expect(server.seen).toEqual([]);
    await run("check --name other", env);
    expect(server.seen.map(({ body }) => body).join("")).toContain('"TableName":"other"');
  });

  it("stays the name of an entity where that has one", async () => {
    await run("entity create key-1 --name Ada");
    expect((await run("entity show key-1")).stdout).toContain("Name     Ada\n");
  });
});

it("an impossible name of a stack is refused before AWS is asked anything, and before a question", async () => {
  for (const verb of ["deploy", "delete", "list", "version", "check", "upgrade", "status"])
    for (const [option, env] of [
      ["--stack my_stack", { ZAEL_REPOSITORY: "" }],
      ["", { ZAEL_REPOSITORY: "dynamodb://eu-west-1/my_stack" }],
      ["", { ZAEL_REPOSITORY: "", ZAEL_STACK: "my_stack" }],
    ] as const) {
      const { code, stderr } = await run(`${verb} ${option}`.trim(), env);
      expect([code, stderr], `${verb} ${option}`).toEqual([2, expect.stringContaining("my_stack")]);
    }
  const into = await run("upgrade --stack one --into my_stack", { ZAEL_REPOSITORY: "" });
  expect([into.code, into.stderr]).toEqual([2, expect.stringContaining("my_stack")]);
  expect(server.seen).toEqual([]);
});
