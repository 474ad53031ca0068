// Deploys, looks at, updates and deletes a stack on a LocalStack that it starts. Run by
// ../smoke-stack.mjs, in a network namespace without any other network.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { deleteStack, deployStack, stackStatus } from "@zae-limiter/infra";
import { Limit, RateLimiter } from "zae-limiter";
import { DynamoRepository } from "zae-limiter/dynamodb";

const [environment] = process.argv.slice(2);
const toPath = (name) => fileURLToPath(new URL(name, import.meta.url));
const START_TIMEOUT_MS = 120_000;
const COUNT_TIMEOUT_MS = 60_000;
const WATCHDOG_MS = 600_000;
const endpointUrl = "http://127.0.0.1:4566";
const place = { stack: "smoke", region: "us-east-1", endpointUrl };

Object.assign(process.env, {
  AWS_ACCESS_KEY_ID: "test",
  AWS_SECRET_ACCESS_KEY: "test",
  AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: "true",
});

const home = mkdtempSync(join(tmpdir(), "smoke-stack-"));
const log = openSync(join(home, "log"), "w");
const localstack = spawn(
  join(environment, "bin", "python"),
  [toPath("run_localstack.py"), process.execPath, toPath("../dynamodb-local.mjs")],
  {
    stdio: ["ignore", log, log],
    env: {
      PATH: process.env.PATH,
      HOME: home,
      FILESYSTEM_ROOT: home,
      GATEWAY_LISTEN: "127.0.0.1:4566",
      DISABLE_EVENTS: "1",
      SKIP_SSL_CERT_DOWNLOAD: "1",
      PROVIDER_OVERRIDE_DYNAMODB: "v2",
      PROVIDER_OVERRIDE_DYNAMODBSTREAMS: "v2",
      PROVIDER_OVERRIDE_CLOUDWATCH: "v1",
    },
  },
);
const watchdog = setTimeout(() => process.exit(1), WATCHDOG_MS);
process.once("exit", () => localstack.kill("SIGKILL"));

try {
  await step("LocalStack starts", waitForStart);
  await step("a stack is created, by a change set, with events and outputs", createStack);
  await step("the table works, and has its version", useTable);
  await step("the function counts usage from the stream", checkCounts);
  await step("the provisioner applies what a resource declares, and answers", declareLimits);
  await step("deploying it again changes nothing", deployUnchanged);
  await step("an option is changed in place", updateStack);
  await step("its status is shown", checkStatus);
  await step("it is deleted", removeStack);
  await step("it is created again", createAgain);
  await step("everything is deleted", removeWithData);
  console.log("All of it works.");
} catch (error) {
  console.error(error);
  console.error(`\nWhat LocalStack logged last:\n${lastLines(join(home, "log"), 30)}`);
  process.exitCode = 1;
} finally {
  clearTimeout(watchdog);
  localstack.kill();
  await sleep(1000);
  localstack.kill("SIGKILL");
  closeSync(log);
  rmSync(home, { recursive: true, force: true });
}

async function step(name, work) {
  const startedMs = performance.now();
  await work();
  console.log(`ok  ${name} (${((performance.now() - startedMs) / 1000).toFixed(1)} s)`);
}

async function waitForStart() {
  for (const beganMs = performance.now(); performance.now() - beganMs < START_TIMEOUT_MS;) {
    assert.equal(localstack.exitCode, null, "LocalStack ended");
    const answer = await fetch(`${endpointUrl}/_localstack/health`).catch(() => undefined);
    if (answer?.ok) return;
    await sleep(200);
  }
  assert.fail("LocalStack does not answer");
}

async function createStack() {
  const events = [];
  const { outcome, changes, outputs } = await deployStack({
    ...place,
    onEvent: (event) => events.push(event),
  });
  assert.equal(outcome, "created");
  assert.ok(changes.length > 5 && changes.every(({ action }) => action === "add"));
  assert.ok(events.length > changes.length, "each resource has events");
  assert.equal(outputs.TableName, "smoke");
  assert.ok(Object.keys(outputs).length > 3);
}

async function withRepository(work) {
  const repository = await DynamoRepository.open("default", { ...place, provisioning: "never" });
  try {
    await work(repository);
  } finally {
    await repository.close();
  }
}

function useTable() {
  return withRepository(async (repository) => {
    await repository.setSystemDefaults([Limit.perMinute("rpm", 100)]);
    const limiter = new RateLimiter({ repository });
    const call = { entityId: "key-1", resource: "gpt-4", consume: { rpm: 1 } };
    assert.equal(await limiter.acquire(call, () => "done"), "done");
    assert.equal((await repository.getVersionRecord())?.schemaVersion, "1.0.0");
  });
}

function checkCounts() {
  return withRepository(async (repository) => {
    for (const beganMs = performance.now(); performance.now() - beganMs < COUNT_TIMEOUT_MS;) {
      const usage = await repository.getUsageSummary({ entityId: "key-1" }).catch(() => undefined);
      if (usage?.total.rpm === 1) return;
      await sleep(500);
    }
    assert.fail("nothing was counted");
  });
}

/** LocalStack calls no custom resources, so this is what CloudFormation would send. */
async function declareLimits() {
  const answers = [];
  const server = createServer(async (request, response) => {
    answers.push(JSON.parse(await text(request)));
    response.end();
  });
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  const event = {
    RequestType: "Create",
    ResponseURL: `http://127.0.0.1:${server.address().port}/answer`,
    StackId: "arn:aws:cloudformation:us-east-1:000000000000:stack/team/1",
    RequestId: "1",
    LogicalResourceId: "Limits",
    ResourceType: "Custom::ZaeLimiterLimits",
    ResourceProperties: { Manifest: "namespace: team\nresources: {gpt-4: {limits: {rpm: 7/min}}}" },
  };
  try {
    const invocations = "2015-03-31/functions/smoke-limits-provisioner/invocations";
    const scope = "Credential=test/20260101/us-east-1/lambda/aws4_request";
    const response = await fetch(`${endpointUrl}/${invocations}`, {
      method: "POST",
      body: JSON.stringify(event),
      headers: { authorization: `AWS4-HMAC-SHA256 ${scope}, SignedHeaders=host, Signature=none` },
    });
    assert.equal(response.headers.get("x-amz-function-error"), null, await response.text());
  } finally {
    server.close();
  }
  assert.equal(answers[0]?.Status, "SUCCESS", answers[0]?.Reason);
  await withRepository(async (repository) => {
    const team = await repository.namespace("team");
    const limits = await team.getResourceDefaults("gpt-4");
    assert.deepEqual(
      limits.map((limit) => Limit.format(limit)),
      ["rpm:7/min"],
    );
  });
}

async function deployUnchanged() {
  assert.equal((await deployStack(place)).outcome, "unchanged");
}

async function updateStack() {
  const stackOptions = { lambdaMemoryMb: 512 };
  const { outcome, changes } = await deployStack({ ...place, stackOptions });
  assert.equal(outcome, "updated");
  assert.ok(changes.some(({ resourceType }) => resourceType === "AWS::Lambda::Function"));
  assert.equal((await deployStack(place)).outcome, "unchanged", "the option keeps its value");
}

async function checkStatus() {
  const { infrastructure, table, connectivity, aggregator, functions } = await stackStatus(place);
  assert.equal(infrastructure.status, "UPDATE_COMPLETE");
  assert.ok(connectivity.reachable);
  assert.ok(table !== undefined && aggregator !== undefined);
  assert.equal(functions.length, 2);
}

async function removeStack() {
  assert.equal((await deleteStack(place)).outcome, "deleted");
}

async function createAgain() {
  assert.equal((await deployStack(place)).outcome, "created");
}

async function removeWithData() {
  assert.equal((await deleteStack({ ...place, withData: true })).outcome, "deleted");
  assert.equal((await deleteStack(place)).outcome, "absent");
}

function lastLines(path, count) {
  return readFileSync(path, "utf8").trimEnd().split("\n").slice(-count).join("\n");
}
