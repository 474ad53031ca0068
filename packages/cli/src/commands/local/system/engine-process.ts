import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { connect, createServer, type AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { LocalError } from "../../../exit.ts";
import { HOST, type EngineProgram } from "./engine.ts";
import { identifyProcess, type ProcessIdentity } from "./process.ts";

/** An engine that runs. */
export interface RunningEngine {
  readonly endpointUrl: string;
  /** Resolves with how it ended, when it has. */
  readonly ended: Promise<string>;
  stop(): Promise<void>;
}

/** Options of an engine. */
export interface EngineStart {
  readonly port: number;
  readonly data: string | undefined;
  /** Receives the output of the engine. */
  readonly onOutput: (line: string) => void;
  /** Called at once, so that the process is known even if this one dies. */
  readonly onStarted: (engine: ProcessIdentity) => void;
  readonly signal: AbortSignal;
}

/** Enough for a JVM on a busy machine. */
const START_WITHIN_MS = 60_000;
/** How long an engine may take to close its files. */
const STOP_WITHIN_MS = 10_000;
const POLL_MS = 20;

/** Starts an engine and waits until it listens. If that fails, nothing is left behind. */
export async function startEngine(
  program: EngineProgram,
  { port: wanted, data, onOutput, onStarted, signal }: EngineStart,
): Promise<RunningEngine> {
  const port = await freePort(wanted);
  const child = spawn(program.command, program.args(port, data), {
    stdio: ["ignore", "pipe", "pipe"],
    // In a group of its own, because Ctrl-C is for the supervisor, which ends the engine last.
    detached: process.platform !== "win32",
    windowsHide: true,
  });
  const printed = new PrintedLines(child, onOutput);
  const ended = waitForClose(child);
  const kill = (): void => void child.kill("SIGKILL");
  process.once("exit", kill);
  void ended.then(() => process.off("exit", kill));
  const stop = async (): Promise<void> => stopChild(child, ended);
  const identity = child.pid === undefined ? undefined : identifyProcess(child.pid);
  if (identity !== undefined) onStarted(identity);
  const waiting = new AbortController();
  try {
    const wait = { program, printed, signal: AbortSignal.any([signal, waiting.signal]) };
    const died = await Promise.race([ended, waitUntilListening(port, wait).then(() => undefined)]);
    if (died !== undefined)
      throw new LocalError(`The engine could not be started: ${printed.last ?? died}`);
  } catch (error) {
    await stop();
    throw error;
  } finally {
    // Do not wait for an engine that died: that would keep this process alive.
    waiting.abort();
  }
  return { endpointUrl: `http://${HOST}:${port}`, ended, stop };
}

/** The requested port, or for 0 any free one. Throws if it is taken. */
async function freePort(wanted: number): Promise<number> {
  const server = createServer();
  try {
    server.listen(wanted, HOST);
    await once(server, "listening");
    return (server.address() as AddressInfo).port;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EADDRINUSE")
      throw new LocalError(`Port ${wanted} is taken. Choose another with --port, or 0 for any.`);
    throw new LocalError(`Port ${wanted} cannot be used: ${(error as Error).message}`);
  } finally {
    server.close();
  }
}

async function waitUntilListening(
  port: number,
  {
    program,
    printed,
    signal,
  }: {
    readonly program: EngineProgram;
    readonly printed: PrintedLines;
    readonly signal: AbortSignal;
  },
): Promise<void> {
  for (let waitedMs = 0; waitedMs < START_WITHIN_MS; waitedMs += POLL_MS) {
    signal.throwIfAborted();
    if (program.listening === undefined ? await isOpen(port) : printed.has(program.listening))
      return;
    await sleep(POLL_MS);
  }
  throw new LocalError(`The engine did not answer within ${START_WITHIN_MS / 1000} s.`);
}

async function isOpen(port: number): Promise<boolean> {
  const socket = connect(port, HOST);
  return new Promise<boolean>((resolve) => {
    socket.once("connect", () => resolve(true));
    socket.once("error", () => resolve(false));
  }).finally(() => socket.destroy());
}

/** The output of an engine, line by line. */
class PrintedLines {
  /** The last line. */
  last: string | undefined;
  readonly #seen: string[] = [];

  constructor({ stdout, stderr }: ChildProcess, onLine: (line: string) => void) {
    for (const stream of [stdout, stderr]) {
      stream?.setEncoding("utf8").on("data", (text: string) => {
        for (const line of text.split("\n").filter((part) => part.trim() !== "")) {
          this.last = line.replace(/^error: /, "");
          // Only the start is looked at.
          if (this.#seen.length < 100) this.#seen.push(line);
          onLine(line);
        }
      });
    }
  }

  has(pattern: RegExp): boolean {
    return this.#seen.some((line) => pattern.test(line));
  }
}

async function waitForClose(child: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    child.once("error", (error) => resolve(error.message));
    // Not "exit": its last output is of interest.
    child.once("close", (code, signal) => resolve(signal ?? `exit code ${code}`));
  });
}

async function stopChild(child: ChildProcess, ended: Promise<string>): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  child.kill("SIGTERM");
  const patience = new AbortController();
  const late = sleep(STOP_WITHIN_MS, true, { signal: patience.signal }).catch(() => false);
  if ((await Promise.race([ended, late])) === true) child.kill("SIGKILL");
  patience.abort();
  await ended;
}
