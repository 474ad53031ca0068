import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { connect, createServer, type AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

/** A server on this machine, and the way to end it. */
export interface StartedServer {
  readonly endpointUrl: string;
  stop(): Promise<void>;
}

/** Long enough for a JVM on a busy machine. */
const START_TIMEOUT_MS = 60_000;
const POLL_MS = 10;

/**
 * Starts a server on a free port and waits until it answers. It ends with this process at the
 * latest.
 */
export async function startServer(start: (port: number) => ChildProcess): Promise<StartedServer> {
  const port = await freePort();
  const child = start(port);
  const kill = (): void => void child.kill("SIGKILL");
  process.once("exit", kill);
  const stop = async (): Promise<void> => {
    process.off("exit", kill);
    await getStopped(child);
  };
  try {
    await answering(port, child);
  } catch (error) {
    await stop();
    throw error;
  }
  return { endpointUrl: `http://127.0.0.1:${port}`, stop };
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}

/** Servers open their port when they are ready to answer. */
async function answering(port: number, child: ChildProcess): Promise<void> {
  const deadline = performance.now() + START_TIMEOUT_MS;
  while (performance.now() < deadline) {
    if (child.exitCode !== null)
      throw new Error(`The server ended at once with code ${child.exitCode}`);
    if (await isOpen(port)) return;
    await sleep(POLL_MS);
  }
  throw new Error(`The server did not answer within ${START_TIMEOUT_MS} ms`);
}

function isOpen(port: number): Promise<boolean> {
  const socket = connect(port, "127.0.0.1");
  return new Promise<boolean>((resolve) => {
    socket.once("connect", () => resolve(true));
    socket.once("error", () => resolve(false));
  }).finally(() => socket.destroy());
}

async function getStopped(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill("SIGKILL");
  await once(child, "exit");
}
