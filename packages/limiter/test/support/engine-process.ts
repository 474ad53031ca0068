import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { connect, createServer, type AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { isDynamoDbLocalInstalled, startDynamoDbLocal } from "../../../../tools/dynamodb-local.mjs";

/** A DynamoDB that answers on this machine, or wherever `DYNAMODB_ENDPOINT` points. */
export interface Engine {
  readonly name: EngineName;
  readonly endpointUrl: string;
}

/** An engine, and the way to end it. */
export interface StartedEngine extends Engine {
  stop(): Promise<void>;
}

export type EngineName = "dynoxide" | "dynamodb-local" | "endpoint";

/** Long enough for a JVM on a busy machine. */
const START_TIMEOUT_MS = 60_000;
const POLL_MS = 10;

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

/** Starts an engine and waits until it answers. It ends with this process at the latest. */
export async function startEngine(name: EngineName = chosenEngine()): Promise<StartedEngine> {
  if (name === "endpoint")
    return { name, endpointUrl: process.env["DYNAMODB_ENDPOINT"]!, stop: async () => {} };
  const missing = whyMissing(name);
  if (missing !== undefined) throw new Error(missing);
  const port = await freePort();
  const child =
    name === "dynoxide"
      ? spawn(dynoxide, ["--host", "127.0.0.1", "--port", String(port)], { stdio: "ignore" })
      : startDynamoDbLocal(port, { stdio: "ignore" });
  const kill = (): void => void child.kill("SIGKILL");
  process.once("exit", kill);
  const stop = async (): Promise<void> => {
    process.off("exit", kill);
    await stopped(child);
  };
  try {
    await answering(port, child);
  } catch (error) {
    await stop();
    throw error;
  }
  return { name, endpointUrl: `http://127.0.0.1:${port}`, stop };
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}

/** Both engines open their port when they are ready to answer. */
async function answering(port: number, child: ChildProcess): Promise<void> {
  const deadline = performance.now() + START_TIMEOUT_MS;
  while (performance.now() < deadline) {
    if (child.exitCode !== null)
      throw new Error(`The engine ended at once with code ${child.exitCode}`);
    if (await isOpen(port)) return;
    await sleep(POLL_MS);
  }
  throw new Error(`The engine did not answer within ${START_TIMEOUT_MS} ms`);
}

function isOpen(port: number): Promise<boolean> {
  const socket = connect(port, "127.0.0.1");
  return new Promise<boolean>((resolve) => {
    socket.once("connect", () => resolve(true));
    socket.once("error", () => resolve(false));
  }).finally(() => socket.destroy());
}

async function stopped(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill("SIGKILL");
  await once(child, "exit");
}
