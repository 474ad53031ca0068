import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { isDynamoDbLocalInstalled, startDynamoDbLocal } from "../../../../tools/dynamodb-local.mjs";

/** A DynamoDB that answers on this machine, or wherever `DYNAMODB_ENDPOINT` points. */
export interface Engine {
  readonly name: EngineName;
  readonly endpointUrl: string;
  stop(): Promise<void>;
}

export type EngineName = "dynoxide" | "dynamodb-local" | "endpoint";

/** Long enough for a JVM on a busy machine. */
const START_TIMEOUT_MS = 60_000;
/** A fresh JVM needs seconds for its first answers. */
const TEST_TIMEOUT_MS = 30_000;
const POLL_MS = 20;

const dynoxide = fileURLToPath(
  new URL("../../../../node_modules/@dynoxide/linux-x64/dynoxide", import.meta.url),
);

/** `DYNAMODB_ENDPOINT` wins, then `ZAEL_DYNAMODB_ENGINE`, then dynoxide. */
export function chosenEngine(environment: NodeJS.ProcessEnv = process.env): EngineName {
  if (environment["DYNAMODB_ENDPOINT"]) return "endpoint";
  return environment["ZAEL_DYNAMODB_ENGINE"] === "dynamodb-local" ? "dynamodb-local" : "dynoxide";
}

/** Why an engine cannot be started; `undefined` when it can. */
export function whyMissing(name: EngineName = chosenEngine()): string | undefined {
  if (name === "dynoxide" && !existsSync(dynoxide))
    return "@dynoxide/linux-x64 is not installed (it exists for linux-x64 only)";
  if (name === "dynamodb-local" && !isDynamoDbLocalInstalled())
    return "DynamoDB Local is not installed; run: node tools/dynamodb-local.mjs (needs Maven and Java 17)";
  return undefined;
}

/** Starts an engine and waits until it answers. */
export async function startEngine(name: EngineName = chosenEngine()): Promise<Engine> {
  if (name === "endpoint")
    return { name, endpointUrl: process.env["DYNAMODB_ENDPOINT"]!, stop: async () => {} };
  const missing = whyMissing(name);
  if (missing !== undefined) throw new Error(missing);
  const port = await freePort();
  const child =
    name === "dynoxide"
      ? spawn(dynoxide, ["--host", "127.0.0.1", "--port", String(port)], { stdio: "ignore" })
      : startDynamoDbLocal(port, { stdio: "ignore" });
  const endpointUrl = `http://127.0.0.1:${port}`;
  await answering(endpointUrl, child);
  return { name, endpointUrl, stop: async () => stopped(child) };
}

/**
 * A `describe` with an engine of its own. Without the engine it skips and says why; where engines
 * are required (`ZAEL_REQUIRE_ENGINES=1`, as in continuous integration) it fails.
 */
export function describeWithEngine(title: string, body: (engine: () => Engine) => void): void {
  const missing = whyMissing();
  if (missing !== undefined) return withoutEngine(title, missing);
  describe(title, { timeout: TEST_TIMEOUT_MS }, () => {
    let engine: Engine | undefined;
    beforeAll(async () => {
      engine = await startEngine();
    }, START_TIMEOUT_MS);
    afterAll(async () => engine?.stop());
    body(() => engine!);
  });
}

/** A name for a table that no other test uses, on an engine that may outlive this run. */
export function freshTableName(): string {
  tableCount += 1;
  return `test-${process.pid}-${process.hrtime.bigint().toString(36)}-${tableCount}`;
}

let tableCount = 0;

function withoutEngine(title: string, missing: string): void {
  if (process.env["ZAEL_REQUIRE_ENGINES"] === "1") return it(title, () => expect.fail(missing));
  console.warn(`SKIPPED ${title}: ${missing}`);
  describe.skip(`${title}: ${missing}`, () => it("needs the engine", () => {}));
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}

/** Any HTTP answer will do: an engine that is up refuses an empty request. */
async function answering(endpointUrl: string, child: ChildProcess): Promise<void> {
  const deadline = performance.now() + START_TIMEOUT_MS;
  while (performance.now() < deadline) {
    if (child.exitCode !== null)
      throw new Error(`The engine ended at once with code ${child.exitCode}`);
    const answered = await fetch(endpointUrl).then(
      () => true,
      () => false,
    );
    if (answered) return;
    await sleep(POLL_MS);
  }
  await stopped(child);
  throw new Error(`The engine did not answer within ${START_TIMEOUT_MS} ms`);
}

async function stopped(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill("SIGKILL");
  await once(child, "exit");
}
