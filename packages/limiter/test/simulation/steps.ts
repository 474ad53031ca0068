import type { Random } from "zae-limiter";
import { between, pick } from "../support/seeded/random-choice.ts";
import {
  ENTITIES,
  LIMIT_NAMES,
  LIMIT_SETS,
  RESOURCES,
  START_TIMES_MS,
  THEMES,
} from "./fixtures.ts";

/**
 * How much of one limit: a fixed number, or in proportion to what is there when the step is taken,
 * which hits the edges.
 */
export interface AmountChoice {
  readonly name: string;
  readonly mode: "fixed" | "all" | "one too many" | "capacity" | "more than capacity";
  readonly tokens: number;
}

/** What happens to one operation of the store. */
export type FaultChoice = "error-before" | "error-after" | undefined;

/** Something that a caller does with its lease. `resource` picks one of the lease's. */
export interface LeaseAction {
  readonly kind: "consume" | "adjust" | "release" | "settle";
  readonly resource: number;
  readonly amounts: readonly AmountChoice[];
  readonly fault: FaultChoice;
}

/** One acquire, and what its lease does. */
export interface AcquireStep {
  readonly kind: "acquire";
  readonly client: number;
  readonly entityId: string;
  readonly resource: string;
  readonly amounts: readonly AmountChoice[];
  readonly also: readonly AmountChoice[] | undefined;
  readonly override: number | undefined;
  readonly how: "lease" | "try" | "callback";
  /** Of a callback only. */
  readonly actions: readonly LeaseAction[];
  readonly ending: "return" | "throw" | "crash";
  readonly endFaults: readonly FaultChoice[];
  readonly fault: FaultChoice;
  readonly onUnavailable: "allow" | "block";
  /** The client dies when the answer of its acquire is lost. */
  readonly crashIfLost: boolean;
}

/** One charge for what has already happened. */
export interface ChargeStep {
  readonly kind: "charge";
  readonly client: number;
  readonly entityId: string;
  readonly resource: string;
  readonly amounts: readonly AmountChoice[];
  readonly also: readonly AmountChoice[] | undefined;
  readonly fault: FaultChoice;
}

/**
 * One thing that happens. Plain data that refers to nothing that came before, so that any part of a
 * history can be replayed.
 */
export type Step =
  | AcquireStep
  | ChargeStep
  | { readonly kind: "use"; readonly lease: number; readonly action: LeaseAction }
  | {
      readonly kind: "end";
      readonly lease: number;
      readonly how: "commit" | "rollback" | "dispose";
      readonly faults: readonly FaultChoice[];
    }
  | { readonly kind: "crash"; readonly client: number }
  | { readonly kind: "clock"; readonly ms: number }
  /** The clock goes on to the end of an open window of this bucket, or of any, and so much more. */
  | {
      readonly kind: "window end";
      readonly entityId: string;
      readonly resource: string;
      readonly offsetMs: number;
    }
  | { readonly kind: "retry"; readonly early: boolean }
  | {
      readonly kind: "set limits";
      readonly level: number;
      readonly entityId: string;
      readonly resource: string;
      readonly limits: number;
      readonly inherit: boolean;
    }
  | {
      readonly kind: "delete limits";
      readonly level: number;
      readonly entityId: string;
      readonly resource: string;
    }
  | {
      readonly kind: "create entity";
      readonly entityId: string;
      readonly parentId: string | undefined;
      readonly cascade: boolean;
    }
  | { readonly kind: "delete entity"; readonly entityId: string };

/** Everything that a run depends on. */
export interface History {
  readonly startMs: number;
  /** How far each client's clock is off. */
  readonly skewsMs: readonly number[];
  readonly steps: readonly Step[];
  /** Which limits all limiters have as defaults; undefined for none. */
  readonly defaults?: number | undefined;
}

/** The most that a client's clock is off. */
export const LARGEST_SKEW_MS = 3000;

const FEWEST_STEPS = 50;
const MOST_STEPS = 152;
const CLIENTS = 3;

/** What a history may hold. */
export interface HistoryOptions {
  readonly mostSteps?: number;
  /** Whether all clocks agree, and never go back. */
  readonly steadyClock?: boolean;
}

/** Makes a random history. */
export function makeHistory(
  random: Random,
  { mostSteps = MOST_STEPS, steadyClock = false }: HistoryOptions = {},
): History {
  const startMs = pick(random, START_TIMES_MS);
  const skewed = random() < 0.4 && !steadyClock;
  const skewsMs = Array.from({ length: CLIENTS }, () =>
    skewed ? between(random, -LARGEST_SKEW_MS, LARGEST_SKEW_MS) : 0,
  );
  const count = between(random, Math.min(FEWEST_STEPS, mostSteps), mostSteps);
  const sets = pick(random, THEMES);
  const steps = opening(random, sets);
  while (steps.length < count) {
    const step = makeStep(random, sets);
    steps.push(steadyClock && step.kind === "clock" ? { ...step, ms: Math.abs(step.ms) } : step);
  }
  const defaults = random() < 0.3 ? between(random, 0, LIMIT_SETS.length - 1) : undefined;
  return { startMs, skewsMs, steps, defaults };
}

/** Most histories begin with limits and a family, so that their steps have something to work on. */
function opening(random: Random, sets: readonly number[]): Step[] {
  const steps: Step[] = [
    {
      kind: "set limits",
      level: 3,
      entityId: "p",
      resource: "r",
      limits: pick(random, sets),
      inherit: true,
    },
  ];
  if (random() < 0.8)
    steps.push({ kind: "create entity", entityId: "p", parentId: undefined, cascade: false });
  if (random() < 0.8)
    steps.push({ kind: "create entity", entityId: "c", parentId: "p", cascade: random() < 0.9 });
  if (random() < 0.5)
    steps.push({ kind: "create entity", entityId: "d", parentId: "p", cascade: random() < 0.9 });
  return steps;
}

function makeStep(random: Random, sets: readonly number[]): Step {
  const roll = random();
  if (roll < 0.31) return makeAcquire(random);
  if (roll < 0.34) return makeCharge(random);
  if (roll < 0.48) return { kind: "use", lease: between(random, 0, 9), action: makeAction(random) };
  if (roll < 0.63)
    return {
      kind: "end",
      lease: between(random, 0, 9),
      how: pick(random, ENDINGS),
      faults: makeFaults(random),
    };
  if (roll < 0.75) return { kind: "clock", ms: clockStepMs(random) };
  if (roll < 0.79)
    return {
      kind: "window end",
      entityId: pick(random, ENTITIES),
      resource: pick(random, RESOURCES),
      offsetMs: pick(random, [-1, 0, 0, 1, between(random, 0, 3_700_000)]),
    };
  if (roll < 0.84) return { kind: "retry", early: random() < 0.4 };
  if (roll < 0.94) return makeConfiguration(random, sets);
  if (roll < 0.965) return makeCreation(random);
  if (roll < 0.98) return { kind: "delete entity", entityId: pick(random, ENTITIES) };
  return { kind: "crash", client: between(random, 0, CLIENTS - 1) };
}

const ENDINGS = ["commit", "commit", "rollback", "dispose"] as const;
const MODES = [
  "fixed",
  "fixed",
  "fixed",
  "fixed",
  "all",
  "all",
  "one too many",
  "one too many",
  "capacity",
  "more than capacity",
] as const;

function makeAcquire(random: Random): AcquireStep {
  const roll = random();
  const override = roll < 0.15 ? between(random, 0, LIMIT_SETS.length - 1) : undefined;
  return {
    kind: "acquire",
    client: between(random, 0, CLIENTS - 1),
    entityId: pick(random, ENTITIES),
    resource: pick(random, RESOURCES),
    amounts: makeAmounts(random),
    also: roll > 0.85 ? makeAmounts(random) : undefined,
    override,
    how: pick(random, ["lease", "try", "callback"] as const),
    actions: Array.from({ length: between(random, 0, 2) }, () => makeAction(random)),
    ending: pick(random, ["return", "return", "return", "throw", "crash"] as const),
    endFaults: makeFaults(random),
    fault: makeFault(random),
    onUnavailable: pick(random, ["allow", "block"] as const),
    crashIfLost: random() < 0.5,
  };
}

function makeCharge(random: Random): ChargeStep {
  return {
    kind: "charge",
    client: between(random, 0, CLIENTS - 1),
    entityId: pick(random, ENTITIES),
    resource: pick(random, RESOURCES),
    amounts: makeAmounts(random),
    also: random() < 0.2 ? makeAmounts(random) : undefined,
    fault: makeFault(random),
  };
}

function makeAction(random: Random): LeaseAction {
  return {
    kind: pick(random, ["consume", "adjust", "release", "settle", "settle"] as const),
    resource: between(random, 0, 1),
    amounts: makeAmounts(random),
    fault: makeFault(random),
  };
}

function makeAmounts(random: Random): readonly AmountChoice[] {
  return LIMIT_NAMES.filter(() => random() < 0.6).map((name) => ({
    name,
    mode: pick(random, MODES),
    tokens: between(random, 0, random() < 0.1 ? 2000 : 6),
  }));
}

function makeFault(random: Random): FaultChoice {
  const roll = random();
  if (roll < 0.05) return "error-before";
  return roll < 0.1 ? "error-after" : undefined;
}

/** For the three attempts that the end of a lease gets. */
function makeFaults(random: Random): readonly FaultChoice[] {
  if (random() < 0.8) return [];
  return Array.from({ length: between(random, 1, 3) }, () =>
    random() < 0.5 ? "error-before" : "error-after",
  );
}

function clockStepMs(random: Random): number {
  const roll = random();
  if (roll < 0.35) return between(random, 1, 50);
  if (roll < 0.65) return between(random, 51, 5000);
  if (roll < 0.8) return between(random, 5001, 3_700_000);
  if (roll < 0.85) return between(random, 3_700_001, 9 * 86_400_000);
  return roll < 0.95 ? -between(random, 1, 5000) : -between(random, 5001, 7_300_000);
}

function makeConfiguration(random: Random, sets: readonly number[]): Step {
  const place = {
    level: between(random, 0, 3),
    entityId: pick(random, ENTITIES),
    resource: pick(random, RESOURCES),
  };
  if (random() < 0.3) return { kind: "delete limits", ...place };
  return { kind: "set limits", ...place, limits: pick(random, sets), inherit: random() < 0.5 };
}

function makeCreation(random: Random): Step {
  const parentId = random() < 0.6 ? pick(random, ["p", "p", "q"]) : undefined;
  return {
    kind: "create entity",
    entityId: pick(random, ENTITIES),
    parentId,
    cascade: random() < 0.8,
  };
}
