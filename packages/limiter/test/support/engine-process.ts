import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { isDynamoDbLocalInstalled, startDynamoDbLocal } from "../../../../tools/dynamodb-local.mjs";
import { startServer, type StartedServer } from "./server-process.ts";

/** A DynamoDB that answers on this machine, or wherever `DYNAMODB_ENDPOINT` points. */
export interface Engine {
  readonly name: EngineName;
  readonly endpointUrl: string;
}

/** An engine, and the way to end it. */
export type StartedEngine = Engine & StartedServer;

export type EngineName = "dynoxide" | "dynamodb-local" | "endpoint";

const dynoxide = fileURLToPath(
  new URL("../../../../node_modules/@dynoxide/linux-x64/dynoxide", import.meta.url),
);

/**
 * `DYNAMODB_ENDPOINT` wins, then `ZAEL_DYNAMODB_ENGINE`, then dynoxide. Where that does not exist,
 * DynamoDB Local takes its place if it was fetched.
 */
export function chosenEngine(environment: NodeJS.ProcessEnv = process.env): EngineName {
  if (environment["DYNAMODB_ENDPOINT"]) return "endpoint";
  const engine = environment["ZAEL_DYNAMODB_ENGINE"];
  const isLocal = engine === undefined && !existsSync(dynoxide) && isDynamoDbLocalInstalled();
  return engine === "dynamodb-local" || isLocal ? "dynamodb-local" : "dynoxide";
}

/** Why an engine cannot be started; `undefined` when it can. */
export function whyMissing(name: EngineName = chosenEngine()): string | undefined {
  if (name === "dynoxide" && !existsSync(dynoxide))
    return "@dynoxide/linux-x64 is not installed (elsewhere, run: node tools/dynamodb-local.mjs)";
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
  const server = await startServer((port) =>
    name === "dynoxide"
      ? spawn(dynoxide, ["--host", "127.0.0.1", "--port", String(port)], { stdio: "ignore" })
      : startDynamoDbLocal(port, { stdio: "ignore" }),
  );
  return { name, ...server };
}
