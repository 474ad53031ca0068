// The process that runs a local system. It begins and ends in this order, and whatever fails or is
// asked to end goes through all that was begun, backwards:
//
//   control server   answers `local status`, `local down`
//   claim of folder  one supervisor for a stack; what one that died has left is ended first
//   claim of data    one engine for a data folder
//   engine           its death ends the system: what programs write would go nowhere
//   table            with its stream, and the namespace `default`
//   aggregator       is started again when it fails
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import type { RunnerProgress } from "zae-limiter/aggregator";
import type { DynamoClient } from "zae-limiter/dynamodb";
import { LocalError } from "../../../exit.ts";
import type { Environment } from "../../../environment.ts";
import { timeText } from "../../../output/text.ts";
import { Claim, type Claimed } from "./claim.ts";
import { ControlServer } from "./control.ts";
import { startEngine, type RunningEngine } from "./engine-process.ts";
import { findEngine, type EngineChoice, type EngineProgram } from "./engine.ts";
import { LOCAL_CREDENTIALS, type LocalAddress } from "./environment-variables.ts";
import { LocalAggregator, type AggregatorStatus } from "./local-aggregator.ts";
import { endProcess, isAlive, processIdentity, type ProcessIdentity } from "./process-identity.ts";
import type { LocalFolder, LocalState } from "./state.ts";

/** What a local system is to be. */
export interface LocalOptions extends EngineChoice {
  readonly stack: string;
  readonly region: string;
  readonly port: number;
  readonly data?: string;
}

/** What a supervisor works with. */
export interface SupervisorContext {
  readonly folder: LocalFolder;
  readonly environment: Environment;
  readonly onReady: (state: LocalState) => void;
  readonly onLine: (line: string) => void;
  readonly onProgress: (progress: RunnerProgress) => void;
}

/** What a supervisor tells those who ask. */
export interface SupervisorStatus extends LocalState {
  readonly aggregator: AggregatorStatus;
}

/** How a supervisor's work came to its end. */
export type Supervised =
  | { readonly outcome: "ended" }
  | { readonly outcome: "already-running"; readonly state: LocalState };

/** Runs a local system until it is to end. Rejects with the reason if it could not go on. */
export async function superviseLocal(
  options: LocalOptions,
  context: SupervisorContext,
): Promise<Supervised> {
  return new Supervisor(options, context).run();
}

/** How long everything may take to be ready: a JVM on a busy machine needs a minute. */
const READY_WITHIN_MS = 120_000;

/** How often the supervisor looks whether it can still be found. */
const LOOK_EVERY_MS = 1000;

/** How long the aggregator may take for the batches that are under way. */
const AGGREGATOR_ENDS_WITHIN_MS = 10_000;

/** Who uses a data folder. */
interface DataClaim extends Claimed {
  readonly stack: string;
  readonly engineProcess?: ProcessIdentity;
}

class Supervisor {
  readonly #options: LocalOptions;
  readonly #context: SupervisorContext;
  /** Aborts when the system is to end, for whatever reason. */
  readonly #ending = new AbortController();
  readonly #holder = processIdentity(process.pid)!;
  /** Why it ends, unless somebody asked for it. */
  #reason: string | undefined;
  #claim: Claim<LocalState> | undefined;
  #dataClaim: Claim<DataClaim> | undefined;
  #aggregator: LocalAggregator | undefined;

  constructor(options: LocalOptions, context: SupervisorContext) {
    this.#options = options;
    this.#context = context;
  }

  async run(): Promise<Supervised> {
    const { environment } = this.#context;
    const program = findEngine(this.#options, environment.env);
    const interrupted = (): void => this.#stop("Interrupted. Again, to end at once.");
    const stopListening = environment.onInterrupt(interrupted, { orUnread: true });
    // The terminal was closed. The engine has a group of its own, and would stay.
    process.once("SIGHUP", interrupted);
    const control = await ControlServer.start({
      status: () => this.#status(),
      stop: () => this.#stop("It was told to end."),
    });
    try {
      const heldBy = await this.#take(program, control);
      if (heldBy !== undefined) return { outcome: "already-running", state: heldBy };
      await this.#runClaimed(program);
      return { outcome: "ended" };
    } finally {
      control.close();
      stopListening();
      process.off("SIGHUP", interrupted);
    }
  }

  /** Takes the folder of the stack; returns the state of another supervisor that has it. */
  async #take(program: EngineProgram, control: ControlServer): Promise<LocalState | undefined> {
    const { folder, environment } = this.#context;
    const { stack, region, data } = this.#options;
    folder.create();
    const outcome = await Claim.take<LocalState>(folder.path, {
      holder: this.#holder,
      stack,
      region,
      phase: "starting",
      control: control.address,
      startedAt: new Date(environment.nowMs()).toISOString(),
      engine: program.name,
      ...(data !== undefined && { data }),
    });
    if ("heldBy" in outcome) return outcome.heldBy;
    this.#claim = outcome.claim;
    folder.shortenLog();
    this.#log(`Starting the stack ${stack} with ${program.name}.`);
    await this.#endLeftEngine(outcome.before);
    return undefined;
  }

  async #runClaimed(program: EngineProgram): Promise<void> {
    const crashed = (error: Error): void => this.#log(`The supervisor crashed: ${error.stack}`);
    process.once("uncaughtExceptionMonitor", crashed);
    const patience = setTimeout(() => this.#failUnlessReady(), READY_WITHIN_MS);
    const looks = setInterval(() => this.#failUnlessThere(), LOOK_EVERY_MS);
    try {
      await this.#takeData();
      await this.#runEngine(program);
    } catch (error) {
      // What fails because the system ends is no reason of its own.
      if (!this.#ending.signal.aborted) this.#reason = messageOf(error);
    } finally {
      clearTimeout(patience);
      clearInterval(looks);
      process.off("uncaughtExceptionMonitor", crashed);
    }
    const reason = this.#reason;
    this.#log(reason ?? "Ended.");
    if (this.#dataClaim?.isThere === true) this.#dataClaim.update({ released: true });
    if (this.#claim?.isThere === true)
      this.#claim.update({ phase: "ended", released: true, ...(reason && { reason }) });
    if (reason !== undefined) throw new LocalError(reason);
  }

  async #takeData(): Promise<void> {
    const { data, stack } = this.#options;
    if (data === undefined) return;
    const outcome = await Claim.take<DataClaim>(data, { holder: this.#holder, stack }).catch(
      (error: unknown) => {
        throw new LocalError(`The data folder ${data} cannot be used: ${messageOf(error)}`);
      },
    );
    if ("heldBy" in outcome)
      throw new LocalError(
        `The data folder ${data} is in use by the stack ${outcome.heldBy.stack}. ` +
          `To end that: zae-limiter local down --stack ${outcome.heldBy.stack}`,
      );
    this.#dataClaim = outcome.claim;
    await this.#endLeftEngine(outcome.before);
  }

  async #runEngine(program: EngineProgram): Promise<void> {
    const { port, data } = this.#options;
    const engine = await startEngine(program, {
      port,
      data,
      signal: this.#ending.signal,
      onOutput: (line) => this.#log(`engine: ${line}`),
      onStarted: (engineProcess) => {
        if (engineProcess === undefined) return;
        this.#claim?.update({ engineProcess });
        this.#dataClaim?.update({ engineProcess });
      },
    });
    void engine.ended.then((how) => this.#fail(engineDied(how, data)));
    try {
      this.#claim?.update({ endpointUrl: engine.endpointUrl });
      await this.#runOn(engine);
    } finally {
      await engine.stop();
    }
  }

  /** Prepares the table and runs the aggregator, until the system is to end. */
  async #runOn({ endpointUrl }: RunningEngine): Promise<void> {
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
      const running = this.#aggregate(table);
      const ended = once(signal, "abort");
      // It ends by itself only when it could not begin.
      await Promise.race([running, ended]);
      await Promise.race([running, sleep(AGGREGATOR_ENDS_WITHIN_MS, undefined, { ref: false })]);
    } finally {
      client.destroy();
    }
  }

  async #aggregate(table: LocalTable): Promise<void> {
    const { environment, onProgress, onReady } = this.#context;
    this.#aggregator = new LocalAggregator({
      runAggregator: environment.runAggregator,
      table,
      onProgress,
      onProblem: (text) => this.#log(`aggregator: ${text}`),
    });
    await this.#aggregator.run(this.#ending.signal, () => {
      this.#claim!.update({ phase: "running" });
      this.#log(`Ready at ${table.endpointUrl}.`);
      onReady(this.#claim!.content);
    });
  }

  /** Ends the engine of a supervisor that died. */
  async #endLeftEngine(before: Partial<LocalState> | undefined): Promise<void> {
    const engineProcess = before?.engineProcess;
    if (engineProcess === undefined || !isAlive(engineProcess)) return;
    this.#log(`An earlier supervisor died. Ending its engine, process ${engineProcess.pid}.`);
    if (!(await endProcess(engineProcess)))
      this.#log(`Process ${engineProcess.pid} cannot be told apart from others, and stays.`);
  }

  #status(): SupervisorStatus | object {
    const state = this.#claim?.content;
    const aggregator = this.#aggregator?.status ?? { state: "starting" };
    return state === undefined ? {} : { ...state, aggregator };
  }

  #failUnlessReady(): void {
    if (this.#claim?.content.phase !== "starting") return;
    const problem = this.#aggregator?.status.problem ?? "";
    this.#fail(`It was not ready within ${READY_WITHIN_MS / 1000} s. ${problem}`.trim());
  }

  #failUnlessThere(): void {
    const { folder } = this.#context;
    if (this.#claim?.isThere === false)
      this.#fail(`The folder ${folder.path} was removed, so no command can find it any more.`);
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
    if (this.#claim?.isThere === true) folder.writeLog(line);
    onLine(line);
  }
}

/** The table of a local system, and the client that reaches it. */
interface LocalTable extends LocalAddress {
  readonly client: DynamoClient;
}

async function createTable(table: LocalTable): Promise<void> {
  const { DynamoRepository } = await import("zae-limiter/dynamodb");
  const repository = await DynamoRepository.open("default", { ...table, provisioning: "table" });
  await repository.close();
}

function engineDied(how: string, data: string | undefined): string {
  const fate =
    data === undefined ? "Its data was in memory and is gone." : `Its data is in ${data}.`;
  return `The engine ended (${how}). ${fate} To start it again: zae-limiter local up`;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
