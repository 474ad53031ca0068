import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

/** The engine that a benchmark runs on. */
export interface Engine {
  readonly endpointUrl: string;
  stop(): Promise<void>;
}

const START_TIMEOUT_MS = 30_000;
const binary = fileURLToPath(
  new URL("../../../node_modules/@dynoxide/linux-x64/dynoxide", import.meta.url),
);

/** `DYNAMODB_ENDPOINT`, or an engine of our own. */
export async function startEngine(): Promise<Engine> {
  const given = process.env["DYNAMODB_ENDPOINT"];
  if (given) return { endpointUrl: given, stop: async () => {} };
  const port = await freePort();
  const child = spawn(binary, ["--host", "127.0.0.1", "--port", String(port)], { stdio: "ignore" });
  const endpointUrl = `http://127.0.0.1:${port}`;
  const kill = (): void => void child.kill("SIGKILL");
  process.once("exit", kill);
  const stop = async (): Promise<void> => {
    process.off("exit", kill);
    kill();
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  };
  for (
    const startedMs = performance.now();
    performance.now() - startedMs < START_TIMEOUT_MS;
    await sleep(20)
  ) {
    if (child.exitCode !== null)
      throw new Error(`The engine ended at once with code ${child.exitCode}`);
    const isUp = await fetch(endpointUrl).then(
      () => true,
      () => false,
    );
    if (isUp) return { endpointUrl, stop };
  }
  await stop();
  throw new Error(`The engine did not answer within ${START_TIMEOUT_MS} ms`);
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}
