// The process of a local system. It starts in this order; any failure or end undoes the started
// steps in reverse:
//
//   pid file of the stack   one process for a stack; the engine of one that died is ended first
//   pid file of the data    one engine for a data folder
//   engine                  its death ends the system: what programs write would be lost
//   table                   with its stream, and the namespace `default`
//   aggregator              started again when it fails
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import type { RunnerProgress } from "zae-limiter/aggregator";
import type { Environment } from "../../../environment.ts";
import { LocalError } from "../../../exit.ts";
import { timeText } from "../../../output/text.ts";
import { startEngine, type RunningEngine } from "./engine-process.ts";
import { findEngine, type EngineChoice, type EngineProgram } from "./engine.ts";
import { LOCAL_CREDENTIALS, type LocalAddress } from "./environment-variables.ts";
import { LocalAggregator } from "./local-aggregator.ts";
import type { LocalFolder, LocalState } from "./local-folder.ts";
import { PidFile, type Ownership } from "./pid-file.ts";
import { endProcess, identifyThisProcess, isRunning, type ProcessIdentity } from "./process.ts";

/** Options of a local system. */
export interface LocalOptions extends EngineChoice {
  readonly stack: string;
  readonly region: string;
  readonly port: number;
  readonly data?: string;
}

/** The dependencies of a local system. */
export interface LocalContext {
  readonly folder: LocalFolder;
  readonly environment: Environment;
  readonly onReady: (state: LocalState) => void;
  readonly onLine: (line: string) => void;
  readonly onProgress: (progress: RunnerProgress) => void;
}

/**
 * Runs a local system until it is interrupted. Returns the state of another process that already
 * runs it, if there is one. Rejects with the reason if it could not go on.
 */
export async function runLocalSystem(
  options: LocalOptions,
  context: LocalContext,
): Promise<LocalState | undefined> {
  return new LocalSystem(options, context).run();
}

/** How long everything may take to be ready: a JVM on a busy machine needs a minute. */
const READY_WITHIN_MS = 120_000;

/** How often the state of the aggregator is written to the pid file. */
const WRITE_EVERY_MS = 1000;

/** How long the aggregator may take for the batches that are under way. */
const AGGREGATOR_ENDS_WITHIN_MS = 10_000;

/** How long an engine that was left over may take to close its files. */
const ENGINE_ENDS_WITHIN_MS = 5000;

/** The user of a data folder. */
interface DataState extends Ownership {
  readonly stack: string;
  readonly engineProcess?: ProcessIdentity;
}

class LocalSystem {
  readonly #options: LocalOptions;
  readonly #context: LocalContext;
  readonly #ending = new AbortController();
  #reason: string | undefined;
  #state: LocalState;
  #aggregator: LocalAggregator | undefined;

  constructor(options: LocalOptions, context: LocalContext) {
    this.#options = options;
    this.#context = context;
    const { environment } = context;
    const { stack, region, data } = options;
    this.#state = {
      owner: identifyThisProcess(),
      stack,
      region,
      phase: "starting",
      startedAt: new Date(environment.nowMs()).toISOString(),
      engine: findEngine(options, environment.env).name,
      ...(data !== undefined && { data }),
    };
  }

  async run(): Promise<LocalState | undefined> {
    const { folder, environment } = this.#context;
    const interrupt = (): void => this.#stop("Interrupted. Interrupt again to end at once.");
    const stopListening = environment.onInterrupt(interrupt, { orUnread: true });
    // The terminal was closed. The engine has a process group of its own, and would stay.
    process.once("SIGHUP", interrupt);
    try {
      folder.create();
      const outcome = await folder.pidFile.take(this.#state);
      if (!outcome.taken) return outcome.ownedBy;
      folder.shortenLog();
      const { stack, engine } = this.#state;
      this.#log(`Starting the stack ${stack} with ${engine}.`);
      await this.#runOwned(outcome.before);
      return undefined;
    } finally {
      stopListening();
      process.off("SIGHUP", interrupt);
    }
  }

  async #runOwned(before: LocalState | undefined): Promise<void> {
    const patience = setTimeout(() => this.#failUnlessReady(), READY_WITHIN_MS);
    const writes = setInterval(() => this.#writeAggregator(), WRITE_EVERY_MS);
    try {
      await this.#endLeftEngine(before);
      await this.#runOnData();
    } catch (error) {
      // A step that fails because the system ends is not the reason for the end.
      if (!this.#ending.signal.aborted) this.#reason = toMessage(error);
    } finally {
      clearTimeout(patience);
      clearInterval(writes);
    }
    const reason = this.#reason;
    this.#log(reason ?? "Ended.");
    this.#update({ phase: "ended", ended: true, ...(reason && { reason }) });
    if (reason !== undefined) throw new LocalError(reason);
  }

  async #runOnData(): Promise<void> {
    const { data, stack } = this.#options;
    if (data === undefined) return this.#runEngine(() => undefined);
    const pidFile = new PidFile<DataState>(data);
    const { owner } = this.#state;
    const outcome = await pidFile.take({ owner, stack }).catch((error: unknown) => {
      throw new LocalError(`The data folder ${data} cannot be used: ${toMessage(error)}`);
    });
    if (!outcome.taken)
      throw new LocalError(
        `The data folder ${data} is in use by the stack ${outcome.ownedBy.stack}. ` +
          `To end that: zae-limiter local down --stack ${outcome.ownedBy.stack}`,
      );
    await this.#endLeftEngine(outcome.before);
    try {
      await this.#runEngine((engineProcess) => pidFile.write({ owner, stack, engineProcess }));
    } finally {
      if (pidFile.exists) pidFile.write({ owner, stack, ended: true });
    }
  }

  async #runEngine(onStarted: (engineProcess: ProcessIdentity) => void): Promise<void> {
    const { port, data } = this.#options;
    const engine = await startEngine(this.#program, {
      port,
      data,
      signal: this.#ending.signal,
      onOutput: (line) => this.#log(`engine: ${line}`),
      onStarted: (engineProcess) => {
        this.#update({ engineProcess });
        onStarted(engineProcess);
      },
    });
    void engine.ended.then((how) => this.#fail(engineDeathText(how, data)));
    try {
      this.#update({ endpointUrl: engine.endpointUrl });
      await this.#aggregate(engine);
    } catch (error) {
      // Before the engine stops, because its end would be taken for the reason.
      this.#fail(toMessage(error));
      throw error;
    } finally {
      await engine.stop();
    }
  }

  get #program(): EngineProgram {
    return findEngine(this.#options, this.#context.environment.env);
  }

  /** Prepares the table and runs the aggregator, until the system is to end. */
  async #aggregate({ endpointUrl }: RunningEngine): Promise<void> {
    const { environment, onProgress, onReady } = this.#context;
    const { stack, region } = this.#options;
    const { signal } = this.#ending;
    const { DynamoDBClient } = await import("@aws-sdk/client-dynamodb");
    const client = new DynamoDBClient({
      region,
      endpoint: endpointUrl,
      credentials: LOCAL_CREDENTIALS,
      maxAttempts: 1,
    });
    const table = { client, stack, region, endpointUrl };
    try {
      await createTable(table);
      signal.throwIfAborted();
      this.#aggregator = new LocalAggregator({
        runAggregator: environment.runAggregator,
        table,
        onProgress,
        onProblem: (text) => this.#log(`aggregator: ${text}`),
      });
      const running = this.#aggregator.run(signal, () => {
        this.#update({ phase: "running", aggregator: this.#aggregator!.status });
        this.#log(`Ready at ${endpointUrl}.`);
        onReady(this.#state);
      });
      // It ends by itself only when it could not begin.
      await Promise.race([running, once(signal, "abort")]);
      await Promise.race([running, sleep(AGGREGATOR_ENDS_WITHIN_MS, undefined, { ref: false })]);
    } finally {
      client.destroy();
    }
  }

  /** Ends the engine of a process that died. */
  async #endLeftEngine(before: Partial<LocalState> | undefined): Promise<void> {
    const { ended = false, engineProcess } = before ?? {};
    // Two pid files may name the same engine, and a restart of the machine ends it too.
    if (ended || engineProcess === undefined || !isRunning(engineProcess)) return;
    this.#log(`An earlier supervisor died. Ending its engine, process ${engineProcess.pid}.`);
    if (!(await endProcess(engineProcess, ENGINE_ENDS_WITHIN_MS)))
      throw new LocalError(`Process ${engineProcess.pid} does not end. End it yourself.`);
  }

  #failUnlessReady(): void {
    if (this.#state.phase !== "starting") return;
    const problem = this.#aggregator?.status.problem ?? "";
    this.#fail(`It was not ready within ${READY_WITHIN_MS / 1000} s. ${problem}`.trim());
  }

  #writeAggregator(): void {
    const { folder } = this.#context;
    if (!folder.pidFile.exists)
      this.#fail(`The folder ${folder.path} was removed, so no command can find it any more.`);
    else if (this.#aggregator !== undefined) this.#update({ aggregator: this.#aggregator.status });
  }

  /** Changes the state that other commands can see. */
  #update(change: Partial<LocalState>): void {
    const { pidFile } = this.#context.folder;
    this.#state = { ...this.#state, ...change };
    if (pidFile.exists) tolerateFullDisk(() => pidFile.write(this.#state));
  }

  #fail(reason: string): void {
    if (this.#ending.signal.aborted) return;
    this.#reason = reason;
    this.#ending.abort();
  }

  #stop(line: string): void {
    if (this.#ending.signal.aborted) return;
    this.#log(line);
    this.#ending.abort();
  }

  #log(text: string): void {
    const { folder, environment, onLine } = this.#context;
    const line = `${timeText(new Date(environment.nowMs()))} ${text}`;
    if (folder.pidFile.exists) tolerateFullDisk(() => folder.writeLog(line));
    onLine(line);
  }
}

/** A full disk costs lines of the log and the latest state, but not the system and its data. */
function tolerateFullDisk(write: () => void): void {
  try {
    write();
  } catch (error) {
    if (!["ENOSPC", "EDQUOT"].includes((error as NodeJS.ErrnoException).code ?? "")) throw error;
  }
}

async function createTable(
  table: LocalAddress & { readonly client: import("zae-limiter/dynamodb").DynamoClient },
): Promise<void> {
  const { DynamoRepository } = await import("zae-limiter/dynamodb");
  const repository = await DynamoRepository.open("default", { ...table, provisioning: "table" });
  await repository.close();
}

function engineDeathText(how: string, data: string | undefined): string {
  const fate =
    data === undefined ? "Its data was in memory and is gone." : `Its data is in ${data}.`;
  return `The engine ended (${how}). ${fate} To start it again: zae-limiter local up`;
}

function toMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
