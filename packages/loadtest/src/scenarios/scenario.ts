import type { Phase, ScriptScenario, Step } from "../engine/artillery.ts";

/** The load of a scenario. */
export interface LoadParameters {
  /** How long users arrive, in seconds. */
  readonly durationSeconds: number;
  /** New users a second, at the highest. */
  readonly rate: number;
  /** How many entities make calls. In `max-rps`, how many loops run at once. */
  readonly users: number;
}

/** A scenario that comes with the package. */
export interface Scenario {
  /** One sentence. */
  readonly description: string;
  /** The module with its user functions: the `processor` of its script. */
  readonly file: URL;
  /** The load unless something else is asked for. */
  readonly defaults: LoadParameters;
  /** The steps that every worker runs before its first user. */
  readonly setup: readonly Step[];
  /** The kinds of users. */
  readonly users: readonly Pick<ScriptScenario, "name" | "weight" | "flow">[];
  /** Variables of its functions, beside the load. */
  readonly variables?: Readonly<Record<string, unknown>>;
  /** The phases of its load. @default the same rate all the time */
  readonly buildPhases?: (parameters: LoadParameters) => readonly Phase[];
}
