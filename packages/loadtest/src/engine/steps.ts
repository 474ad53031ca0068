import { Limit, ValidationError, type Amounts } from "zae-limiter";
import type { Step, UserContext } from "./artillery.ts";
import { buildUnknownNameError } from "./nearest.ts";
import type { RateLimiterSession } from "./session.ts";
import type { Turns } from "./turns.ts";

/** One step, ready to run. */
export type RunStep = (session: RateLimiterSession, context: UserContext) => Promise<void>;

/** What steps need to be prepared. */
export interface StepTools {
  /** The exports of the script's processor. */
  readonly functions: Readonly<Record<string, unknown>>;
  /** Fills `{{ }}` from the variables of a user. */
  readonly fillIn: (value: unknown, context: UserContext) => unknown;
  readonly turns: Turns;
}

/** The options of a step after `{{ }}` was filled. */
type Options = Readonly<Record<string, unknown>>;

/** A step that is described by options alone, and what it does. */
interface PlainStep {
  readonly options: readonly string[];
  readonly run: (session: RateLimiterSession, options: Options) => Promise<unknown>;
}

const LONGEST_SECONDS = 604_800;
const MOST_REPEATS = 1e9;

const ACQUIRE_OPTIONS = "entity resource consume also limits settle workMs waitUpToMs name".split(
  " ",
);

const PLAIN_STEPS: Readonly<Record<string, PlainStep>> = {
  acquire: {
    options: ACQUIRE_OPTIONS,
    run: acquire,
  },
  available: {
    options: ["entity", "resource", "name"],
    run: (session, { entity, resource, name }) =>
      session.available(toText(entity), toText(resource), name === undefined ? name : toText(name)),
  },
  setSystemDefaults: {
    options: ["limits", "onUnavailable"],
    run: (session, { limits, ...options }) =>
      session.manage("setSystemDefaults", toLimits(limits), options),
  },
  setLimits: {
    options: ["entity", "limits", "resource", "inherit"],
    run: (session, { entity, limits, ...options }) =>
      session.manage("setLimits", toText(entity), toLimits(limits), options),
  },
  createEntity: {
    options: ["entity", "parent", "cascade", "name"],
    run: (session, { entity, parent, ...options }) =>
      session.manage("ensureEntity", toText(entity), {
        ...options,
        ...(parent === undefined ? {} : { parentId: toText(parent) }),
      }),
  },
};

/** The steps of a scenario, by name. */
const STEP_NAMES = [...Object.keys(PLAIN_STEPS), "loop", "think", "function"];

/** Prepares a list of steps. Throws for what it does not know. */
export function compileFlow(flow: unknown, tools: StepTools): RunStep {
  if (!Array.isArray(flow)) throw new ValidationError("flow", flow, "must be a list of steps");
  const steps = flow.map((step: Step) => compileStep(step, tools));
  return async (session, context) => {
    for (const run of steps) await run(session, context);
  };
}

function compileStep(step: Step, tools: StepTools): RunStep {
  if (typeof step !== "object" || step === null)
    throw new ValidationError("step", step, `must be an object such as { acquire: … }`);
  if ("loop" in step) return compileLoop(step, tools);
  const names = Object.keys(step);
  const name = names[0];
  if (name === undefined || names.length > 1)
    throw new ValidationError("step", names.join(", "), "must have one name, such as acquire");
  if (name === "function") return compileFunction(step[name], tools);
  if (name === "think") return compileThink(step[name], tools);
  const plain = Object.hasOwn(PLAIN_STEPS, name) ? PLAIN_STEPS[name] : undefined;
  if (plain === undefined) throw buildUnknownNameError("step", name, STEP_NAMES);
  // A list is short for its limits.
  const options = Array.isArray(step[name]) ? { limits: step[name] } : step[name];
  if (typeof options !== "object" || options === null)
    throw new ValidationError(name, options, "must be an object of options");
  checkNames(name, options, plain.options);
  return async (session, context) => {
    await plain.run(session, tools.fillIn(options, context) as Options);
  };
}

function checkNames(step: string, options: object, known: readonly string[]): void {
  for (const option of Object.keys(options))
    if (!known.includes(option)) throw buildUnknownNameError(`${step}.${option}`, option, known);
}

function compileFunction(name: unknown, { functions }: StepTools): RunStep {
  const known = Object.keys(functions).filter((each) => typeof functions[each] === "function");
  if (typeof name !== "string" || !known.includes(name))
    throw buildUnknownNameError("function", String(name), known);
  return functions[name] as RunStep;
}

function compileThink(seconds: unknown, { fillIn }: StepTools): RunStep {
  return async ({ repository }, context) => {
    const wanted = toNumber("think", fillIn(seconds, context), LONGEST_SECONDS);
    await repository.clock.sleep(wanted * 1000);
  };
}

function compileLoop(step: Step, tools: StepTools): RunStep {
  checkNames("loop", step, ["loop", "count", "forSeconds"]);
  if ((step["count"] === undefined) === (step["forSeconds"] === undefined))
    throw new ValidationError("loop", Object.keys(step).join(), "needs a count or forSeconds");
  const run = compileFlow(step["loop"], tools);
  return async (session, context) => {
    const wanted = { count: step["count"], forSeconds: step["forSeconds"] };
    const { count = MOST_REPEATS, forSeconds = LONGEST_SECONDS } = tools.fillIn(
      wanted,
      context,
    ) as Options;
    const most = toNumber("count", count, MOST_REPEATS);
    const endMs = performance.now() + toNumber("forSeconds", forSeconds, LONGEST_SECONDS) * 1000;
    for (let index = 0; index < most && performance.now() < endMs; index += 1) {
      await run(session, context);
      await tools.turns.giveWay();
    }
  };
}

async function acquire(session: RateLimiterSession, options: Options): Promise<void> {
  const { entity, resource, consume, also, limits, settle, workMs, waitUpToMs, name } = options;
  await session.acquire(
    {
      entityId: toText(entity),
      resource: toText(resource),
      consume: toAmounts("consume", consume),
      ...(also === undefined ? {} : { also: toAlso(also) }),
      ...(limits === undefined ? {} : { limits: toLimits(limits) }),
      ...(waitUpToMs === undefined ? {} : { waitUpToMs: Number(waitUpToMs) }),
      ...(settle === undefined ? {} : { settle: toAmounts("settle", settle) }),
      ...(name === undefined ? {} : { name: toText(name) }),
    },
    () => (workMs === undefined ? undefined : session.repository.clock.sleep(Number(workMs))),
  );
}

function toAlso(value: unknown): Record<string, Amounts> {
  return Object.fromEntries(
    Object.entries(value as object).map(([name, each]) => [name, toAmounts(`also.${name}`, each)]),
  );
}

/** What was filled in is text. */
function toAmounts(field: string, value: unknown): Amounts {
  if (typeof value !== "object" || value === null)
    throw new ValidationError(field, value, "must be an object of amounts by limit");
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, Number(each)]));
}

function toLimits(value: unknown): readonly Limit[] {
  if (!Array.isArray(value))
    throw new ValidationError("limits", value, "must be a list of limits such as rpm:300/min");
  return value.map((text: string) => Limit.parse(text));
}

/** Numbers may be names; the limiter refuses everything else. */
function toText(value: unknown): string {
  return typeof value === "number" ? String(value) : (value as string);
}

function toNumber(field: string, value: unknown, most: number): number {
  const number = Number(value);
  if (!(number >= 0 && number <= most))
    throw new ValidationError(field, value, `must be a number from 0 to ${most}`);
  return number;
}
