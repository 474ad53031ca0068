/*
 * A misspelt stack or namespace must not become one. Every verb but those that manage stacks runs
 * against an AWS that records what it is asked: with a table that is missing, and with one that
 * has no namespaces.
 */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { runAggregator } from "zae-limiter/aggregator";
import { openRepository } from "zae-limiter/open";
import {
  refuse,
  reply,
  startScriptedServer,
  type ScriptedServer,
  type SeenRequest,
} from "../../limiter/test/support/scripted-server.ts";
import { listExamples, verbNames, zaeLimiter, type Outcome } from "./command-line.ts";

/** Verbs that are there to change a stack, or to start an engine. */
const MANAGING = /^(?:deploy|delete|upgrade|local .*)$/;

/** Verbs that send no request; some of them write files. */
const OFFLINE = /^(?:(?:limits )?cfn-template|lambda-export)$/;

/** Verbs that register the namespaces that they are given. */
const REGISTERING = /^(?:namespace register|limits apply)$/;

/** The requests that a verb may send to any service of AWS: those that change nothing. */
const READING = /^(?:Get|BatchGet|List|Describe|Scan|Query|Head|GET$|HEAD$)/;

const verbs = verbNames().filter((verb) => !MANAGING.test(verb) && !OFFLINE.test(verb));
let server: ScriptedServer;

beforeEach(async () => {
  server = await startScriptedServer();
  // As on AWS, nothing but the environment says where it is, so `provisioning` is "stack".
  for (const name of Object.keys(process.env).filter((variable) => variable.startsWith("AWS_")))
    vi.stubEnv(name, undefined);
  vi.stubEnv("AWS_CONFIG_FILE", "/dev/null");
  vi.stubEnv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null");
  vi.stubEnv("AWS_ENDPOINT_URL", server.endpointUrl);
  vi.stubEnv("AWS_ACCESS_KEY_ID", "key");
  vi.stubEnv("AWS_SECRET_ACCESS_KEY", "secret");
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await server.stop();
});

const run = (line: readonly string[]): Promise<Outcome> =>
  zaeLimiter(line, {
    open: openRepository,
    runAggregator,
    env: { ZAEL_REPOSITORY: "dynamodb://eu-west-1/mispelt" },
  });

it("there are many verbs", () => expect(verbs.length).toBeGreaterThan(35));

describe("a stack that is missing", () => {
  beforeEach(() => {
    server.answer = (outgoing) => refuse(outgoing, "ResourceNotFoundException");
  });

  it.each(verbs)("is not created by %s, nor is a table [W-67]", async (verb) => {
    for (const example of await listExamples(verb)) {
      await run(example);
      expect(server.seen.map(getOperation).filter(changes), example.join(" ")).toEqual([]);
    }
    // Load tests ask nothing of AWS: there is no Artillery here that could make the load.
    if (verb !== "version" && !verb.startsWith("loadtest"))
      expect(server.seen.length).toBeGreaterThan(0);
  });

  it.each([
    "system set-defaults rpm:10",
    "entity create key-1",
    "entity list",
    "acquire key-1 gpt-4 rpm=1",
  ])("%s says how to deploy it, and exits 1", async (line) => {
    const { code, stdout, stderr } = await run(line.split(" "));
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr).toContain(
      "deploy the stack with zae-limiter deploy --stack mispelt --region eu-west-1,",
    );
  });
});

describe("a namespace that is missing", () => {
  beforeEach(() => {
    server.answer = (outgoing, request) => reply(outgoing, EMPTY[getOperation(request)] ?? {});
  });

  it.each(verbs.filter((verb) => !REGISTERING.test(verb)))(
    "is not registered by %s [W-67]",
    async (verb) => {
      for (const example of await listExamples(verb)) {
        await run(example);
        expect(server.seen.map(getOperation).filter(changes), example.join(" ")).toEqual([]);
      }
    },
  );

  it("is registered by the verb that does", async () => {
    expect(await run(["namespace", "register", "team"])).toMatchObject({ code: 0 });
    // The version record that a table without one gets, and the namespace.
    const written = server.seen.map(getOperation).filter(changes);
    expect(written).toEqual(["PutItem", "TransactWriteItems"]);
  });
});

/** The answers of a table without items. */
const EMPTY: Readonly<Record<string, object>> = {
  BatchGetItem: { Responses: {} },
  Query: { Items: [] },
  DescribeTable: { Table: { TableStatus: "ACTIVE" } },
};

/**
 * The operation of a request. DynamoDB names it in a header, CloudFormation in the body, CloudWatch
 * in the path; for the rest the method is enough.
 */
function getOperation({ method, path, headers, body }: SeenRequest): string {
  const target = headers["x-amz-target"];
  if (typeof target === "string") return target.split(".").at(-1)!;
  const inPath = /\/operation\/(\w+)$/.exec(path)?.[1];
  return inPath ?? new URLSearchParams(body).get("Action") ?? method;
}

function changes(operation: string): boolean {
  return !READING.test(operation);
}
