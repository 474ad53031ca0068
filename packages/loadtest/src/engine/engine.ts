import { monitorEventLoopDelay } from "node:perf_hooks";
import { RateLimiter, ValidationError, type Repository } from "zae-limiter";
import { openRepository } from "zae-limiter/open";
import { Ledger } from "../ledger/ledger.ts";
import type { EngineOptions, MetricEmitter, Step, UserContext } from "./artillery.ts";
import { LAG_METRIC } from "./metrics.ts";
import { buildUnknownNameError } from "./nearest.ts";
import { RateLimiterSession } from "./session.ts";
import { compileFlow, type RunStep, type StepTools } from "./steps.ts";
import { Turns } from "./turns.ts";

/** The part of a script that the engine reads. */
export interface EngineScript {
  /** The target, the options and the loaded processor. */
  readonly config: {
    readonly target?: string;
    readonly engines?: { readonly "zae-limiter"?: EngineOptions };
    readonly processor?: Readonly<Record<string, unknown>> | string;
    readonly variables?: Readonly<Record<string, unknown>>;
  };
  /** The kinds of users, which are checked before the first one starts. */
  readonly scenarios?: readonly { readonly engine?: string; readonly flow?: unknown }[];
}

/** What Artillery lends to engines. */
export interface EngineTools {
  /** Fills `{{ }}` from the variables of a user. */
  template(value: unknown, context: UserContext): unknown;
}

/** Runs one user, and calls back when it has ended. */
export type RunUser = (
  context: UserContext,
  callback: (error: unknown, context: UserContext) => void,
) => void;

/** What a worker shares among its users. */
interface Worker {
  readonly repository: Repository;
  readonly limiter: RateLimiter;
  readonly ledger: Ledger | undefined;
}

const NAME = "zae-limiter";

const OPTION_NAMES = ["ledger", "namespace", "setup"];

/** A load test must not change the limits of anyone. */
const DEFAULT_NAMESPACE = "loadtest";

/** The delay of an idle event loop is measured as this, so it is subtracted. */
const LAG_RESOLUTION_MS = 10;

const LAG_EVERY_MS = 1000;

/** The setup is not part of the load. */
const SILENT: MetricEmitter = { emit: () => {} };

/**
 * The engine that Artillery loads for `engine: zae-limiter`: one in each worker, with one
 * repository.
 */
export class ZaeLimiterEngine {
  readonly #script: EngineScript;
  readonly #options: EngineOptions;
  readonly #tools: StepTools;
  #worker: Promise<Worker> | undefined;
  #lagTimer: NodeJS.Timeout | undefined;

  constructor(script: EngineScript, _emitter: MetricEmitter, tools: EngineTools) {
    this.#script = script;
    this.#options = script.config.engines?.[NAME] ?? {};
    const { processor } = script.config;
    this.#tools = {
      functions: typeof processor === "object" ? processor : {},
      fillIn: (value, context) => tools.template(value, context),
      turns: new Turns(),
    };
  }

  /**
   * Checks the script, opens the repository and runs the setup. Artillery waits for it only because
   * it is literally an async function.
   */
  async init(): Promise<void> {
    for (const { engine, flow } of this.#script.scenarios ?? [])
      if (engine === NAME) compileFlow(flow, this.#tools);
    await this.#open();
  }

  /** Prepares one kind of user. Throws for unknown steps. */
  createScenario(spec: { readonly flow: readonly Step[] }, emitter: MetricEmitter): RunUser {
    const run = compileFlow(spec.flow, this.#tools);
    let session: RateLimiterSession | undefined;
    const runUser = async (context: UserContext): Promise<void> => {
      session ??= new RateLimiterSession({ ...(await this.#open()), emitter });
      await this.#runReported(run, session, context);
    };
    return (context, callback) => {
      emitter.emit("started");
      this.#watchLag(emitter);
      runUser(context).then(
        () => callback(null, context),
        (error: unknown) => callback(error, context),
      );
    };
  }

  /** Ends the ledger and closes the repository. Artillery does not call it; tests do. */
  async close(): Promise<void> {
    clearInterval(this.#lagTimer);
    if (this.#worker === undefined) return;
    const { ledger, repository } = await this.#worker;
    ledger?.close();
    await repository.close();
  }

  async #runReported(
    run: RunStep,
    session: RateLimiterSession,
    context: UserContext,
  ): Promise<void> {
    try {
      await run(session, context);
    } catch (error) {
      session.reportError(error);
      throw error;
    }
  }

  #open(): Promise<Worker> {
    return (this.#worker ??= this.#openWorker());
  }

  async #openWorker(): Promise<Worker> {
    for (const name of Object.keys(this.#options))
      if (!OPTION_NAMES.includes(name))
        throw buildUnknownNameError(`engines.${NAME}.${name}`, name, OPTION_NAMES);
    const { namespace = DEFAULT_NAMESPACE, setup = [] } = this.#options;
    const target = process.env["ZAEL_LOADTEST_TARGET"] || this.#script.config.target;
    if (target === undefined)
      throw new ValidationError("target", target, "must be the URL of a repository");
    const folder = process.env["ZAEL_LOADTEST_LEDGER"] || this.#options.ledger;
    const startedAt = Date.now();
    const repository = await openRepository(target, { namespace });
    const store = target.slice(0, target.indexOf(":"));
    const ledger = folder && new Ledger({ folder, repository, store, startedAt });
    const worker = {
      repository,
      limiter: new RateLimiter({ repository }),
      ledger: ledger || undefined,
    };
    const vars = { ...this.#script.config.variables };
    const session = new RateLimiterSession({ repository, emitter: SILENT });
    await compileFlow(setup, this.#tools)(session, { vars });
    return worker;
  }

  /**
   * Reports how late the event loop was, on the average of each second: a generator that falls
   * behind measures itself. A single pause, such as a collection of garbage, is not that.
   */
  #watchLag(emitter: MetricEmitter): void {
    if (this.#lagTimer !== undefined) return;
    const delay = monitorEventLoopDelay({ resolution: LAG_RESOLUTION_MS });
    delay.enable();
    this.#lagTimer = setInterval(() => {
      const lagUs = delay.mean / 1000 - LAG_RESOLUTION_MS * 1000;
      // There is no mean if the loop was held up for the whole second.
      if (lagUs >= 0 || lagUs < 0)
        emitter.emit("histogram", LAG_METRIC, Math.max(0, Math.round(lagUs)));
      delay.reset();
    }, LAG_EVERY_MS).unref();
  }
}
