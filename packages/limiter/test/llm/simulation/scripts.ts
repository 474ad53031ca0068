import type { TokenUsage } from "zae-limiter/llm";
import { between, pick } from "../../support/seeded/random-choice.ts";

type Random = () => number;

/** How a call ends that does not stream. */
export const PLAIN_ENDS = [
  "answers with usage",
  "answers without usage",
  "answers something that cannot be counted",
  "answers with an error",
  "throws a status",
  "throws a refused connection",
  "throws a lost connection",
  "throws because the caller aborted",
] as const;

/** How a stream ends. */
export const STREAM_ENDS = [
  "complete",
  "complete, then cancelled",
  "cancelled",
  "aborted",
  "broken",
  "too early",
  "idle",
] as const;

/** One call, from its estimate to its end. */
export interface Script {
  readonly entityId: string;
  readonly model: string;
  readonly metering: keyof typeof METERINGS;
  readonly abandoned: "counted" | "kept";
  readonly overrun: "debt" | "stop";
  readonly estimate: { readonly input: number; readonly output: number };
  readonly end: (typeof PLAIN_ENDS)[number] | (typeof STREAM_ENDS)[number];
  /** UTF-8 bytes of the answer: of each part that is read before the end. */
  readonly partBytes: readonly number[];
  /** What is reported at the beginning of a stream, as Anthropic does. */
  readonly firstReport: TokenUsage | undefined;
  /** What is reported for the whole answer, if anything. */
  readonly report: TokenUsage | undefined;
  /** Turns of the event loop before each step. */
  readonly turns: readonly number[];
  /** Whether something else ends the call too, afterwards. */
  readonly endsTwice: boolean;
}

/** Weights in millionths, so that the oracle can count with whole numbers. */
export const METERINGS = {
  openai: {
    rpm: { requests: 1_000_000 },
    tpm: {
      input: 1_000_000,
      cachedInput: 1_000_000,
      cacheWriteInput: 1_000_000,
      output: 1_000_000,
    },
  },
  anthropic: {
    rpm: { requests: 1_000_000 },
    itpm: { input: 1_000_000, cacheWriteInput: 1_000_000 },
    otpm: { output: 1_000_000 },
  },
  credits: {
    credits: {
      requests: 250_000,
      input: 70_000,
      cachedInput: 7_000,
      cacheWriteInput: 87_500,
      output: 333_333,
      reasoning: 1,
    },
  },
} as const;

/** Who makes calls. Some have so little that they are refused now and then. */
export const ENTITIES = ["rich-1", "rich-2", "poor-1"] as const;
export const MODELS = ["gpt-5", "claude"] as const;

export function randomScripts(random: Random, count: number): readonly Script[] {
  return Array.from({ length: count }, (_, index) => randomScript(random, index));
}

function randomScript(random: Random, index: number): Script {
  const isStream = random() < 0.6;
  const isStopping = isStream && random() < 0.25;
  const end = isStream ? pick(random, STREAM_ENDS) : pick(random, PLAIN_ENDS);
  const parts = between(random, 0, 6);
  const mostBytes = isStopping ? 3000 : 300;
  const reports = end === "answers with usage" || (isStream && random() < 0.4);
  return {
    // What such a call takes while it streams can be told apart: its entity has no others.
    entityId: isStopping ? `stopping-${index}` : pick(random, ENTITIES),
    model: pick(random, MODELS),
    metering: pick(random, Object.keys(METERINGS) as (keyof typeof METERINGS)[]),
    abandoned: pick(random, ["counted", "kept"]),
    overrun: isStopping ? "stop" : "debt",
    estimate: { input: between(random, 0, 300), output: between(random, 0, 300) },
    end,
    partBytes: Array.from({ length: parts }, () => between(random, 0, mostBytes)),
    firstReport: isStream && random() < 0.4 ? { ...randomUsage(random), output: 1 } : undefined,
    report: reports ? randomUsage(random) : undefined,
    turns: Array.from({ length: 4 }, () => between(random, 0, 4)),
    endsTwice: random() < 0.3,
  };
}

function randomUsage(random: Random): TokenUsage {
  const output = between(random, 0, 600);
  return {
    input: between(random, 0, 600),
    cachedInput: between(random, 0, 100),
    cacheWriteInput: between(random, 0, 100),
    output,
    reasoning: between(random, 0, output),
  };
}
