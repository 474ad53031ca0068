/*
 * What Artillery passes to an engine, as far as it is used here. Written by hand, so that neither
 * the library nor its tests need Artillery.
 */

/** Where an engine reports what happens; Artillery's emitter, or any other. */
export interface MetricEmitter {
  /** Reports an event: `counter`, `histogram`, `error` or `started`. */
  emit(event: string, ...values: readonly unknown[]): unknown;
}

/** One virtual user. */
export interface UserContext {
  /** The variables of the user, such as those of `config.variables`. */
  readonly vars: Record<string, unknown>;
  readonly [name: string]: unknown;
}

/** One phase of arrivals, as Artillery reads it. */
export interface Phase {
  /** How long it lasts, in seconds. */
  readonly duration?: number;
  /** New users a second. */
  readonly arrivalRate?: number;
  /** Seconds without arrivals. */
  readonly pause?: number;
}

/** A step of a scenario: one key, the name of the step, with its options. */
export type Step = Readonly<Record<string, unknown>>;

/** A kind of user: its steps, and how often it is chosen. */
export interface ScriptScenario {
  /** What reports call it. */
  readonly name: string;
  /** How often it is chosen, relative to the others. */
  readonly weight?: number;
  /** The engine that runs it. */
  readonly engine: string;
  /** Its steps. */
  readonly flow: readonly Step[];
}

/** The options under `config.engines["zae-limiter"]`. */
export interface EngineOptions {
  /** Where each worker writes its ledger. @default none is written */
  readonly ledger?: string;
  /** The namespace of the run. @default "loadtest" */
  readonly namespace?: string;
  /** Steps that every worker runs once, before its first user. They must be safe to repeat. */
  readonly setup?: readonly Step[];
}

/** An Artillery script as plain data. */
export interface Script {
  /** How the load is made. */
  readonly config: {
    readonly target: string;
    readonly engines: { readonly "zae-limiter": EngineOptions };
    /** The path of the module with the functions of `function` steps. */
    readonly processor: string;
    readonly phases: readonly Phase[];
    readonly variables: Readonly<Record<string, unknown>>;
  };
  /** The kinds of users. */
  readonly scenarios: readonly ScriptScenario[];
}
