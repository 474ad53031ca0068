import { hasMethod } from "../../core/options.ts";
import {
  parseCount,
  parseDuration,
  parseMilliseconds,
  parseRetryAfter,
  parseTimestamp,
} from "./header-values.ts";

/** One limit of a provider, from its headers. Missing values are undefined. */
export interface UpstreamLimit {
  /** How much it holds. */
  readonly limit: number | undefined;
  /** How much is left. */
  readonly remaining: number | undefined;
  /** Milliseconds until it is full again. */
  readonly fullAfterMs: number | undefined;
}

/** The limits of a provider, from the headers of one answer. */
export interface UpstreamLimits {
  /** Requests. */
  readonly requests?: UpstreamLimit;
  /** Tokens of all kinds. */
  readonly tokens?: UpstreamLimit;
  /** Tokens of prompts. */
  readonly inputTokens?: UpstreamLimit;
  /** Tokens of answers. */
  readonly outputTokens?: UpstreamLimit;
  /** Milliseconds until a call may be repeated. */
  readonly retryAfterMs?: number;
}

/** What a limit of a provider counts. */
export type UpstreamKind = Exclude<keyof UpstreamLimits, "retryAfterMs">;

/** Headers of an answer: a `Headers` object, or a record with names in any case. */
export type AnswerHeaders = Headers | Readonly<Record<string, string>>;

/** Reads a header by its name in lower case. */
type Lookup = (name: string) => string | undefined;

/** The names of each kind of limit in the headers of OpenAI and Anthropic. */
const KINDS = [
  { kind: "requests", openai: ["requests"], anthropic: "requests" },
  { kind: "tokens", openai: ["tokens", "project-tokens"], anthropic: "tokens" },
  { kind: "inputTokens", openai: [], anthropic: "input-tokens" },
  { kind: "outputTokens", openai: [], anthropic: "output-tokens" },
] as const satisfies readonly { readonly kind: UpstreamKind; readonly [of: string]: unknown }[];

/**
 * Reads `x-ratelimit-*`, `anthropic-ratelimit-*`, `retry-after-ms` and `retry-after`. Invalid
 * values are undefined, and so is the result if there are no valid ones. Never throws.
 * @example const seen = readUpstreamLimits(response.headers, Date.now());
 */
export function readUpstreamLimits(
  headers: AnswerHeaders,
  nowMs: number,
): UpstreamLimits | undefined {
  const lookup = buildLookup(headers);
  const retryAfterMs =
    parseMilliseconds(lookup("retry-after-ms")) ?? parseRetryAfter(lookup("retry-after"), nowMs);
  const seen = pickTightestLimits(retryAfterMs, ({ openai, anthropic }) => [
    ...openai.map((name) => readOpenaiLimit(lookup, name)),
    readAnthropicLimit(lookup, anthropic, nowMs),
  ]);
  return Object.keys(seen).length === 0 ? undefined : seen;
}

function readOpenaiLimit(lookup: Lookup, name: string): UpstreamLimit | undefined {
  return parseUpstreamLimit(
    lookup(`x-ratelimit-limit-${name}`),
    lookup(`x-ratelimit-remaining-${name}`),
    parseDuration(lookup(`x-ratelimit-reset-${name}`)),
  );
}

function readAnthropicLimit(
  lookup: Lookup,
  name: string,
  nowMs: number,
): UpstreamLimit | undefined {
  return parseUpstreamLimit(
    lookup(`anthropic-ratelimit-${name}-limit`),
    lookup(`anthropic-ratelimit-${name}-remaining`),
    parseTimestamp(lookup(`anthropic-ratelimit-${name}-reset`), nowMs),
  );
}

function parseUpstreamLimit(
  limitText: string | undefined,
  remainingText: string | undefined,
  fullAfterMs: number | undefined,
): UpstreamLimit | undefined {
  const limit = parseCount(limitText) || undefined;
  const left = parseCount(remainingText);
  // Nothing left of an invalid limit means that nothing is known.
  const isMeaningless = left === 0 && limitText !== undefined && limit === undefined;
  const remaining = isMeaningless ? undefined : left;
  if (limit === undefined && remaining === undefined && fullAfterMs === undefined) return undefined;
  return { limit, remaining, fullAfterMs };
}

/** Merges two answers: the limits of which less is left, and the longer wait. */
export function mergeStrictest(one: UpstreamLimits, other: UpstreamLimits): UpstreamLimits {
  const longest = Math.max(one.retryAfterMs ?? 0, other.retryAfterMs ?? 0);
  return pickTightestLimits(longest || undefined, ({ kind }) => [one[kind], other[kind]]);
}

/**
 * Picks the limit of each kind of which less is left: a call may count against two, a project's and
 * its owner's.
 */
function pickTightestLimits(
  retryAfterMs: number | undefined,
  readLimit: (source: (typeof KINDS)[number]) => readonly (UpstreamLimit | undefined)[],
): UpstreamLimits {
  const limits: Partial<Record<UpstreamKind, UpstreamLimit>> = {};
  for (const source of KINDS) {
    const reported = readLimit(source).filter((limit) => limit !== undefined);
    if (reported.length > 0) limits[source.kind] = reported.reduce(pickTighter);
  }
  return { ...limits, ...(retryAfterMs !== undefined && { retryAfterMs }) };
}

function pickTighter(one: UpstreamLimit, other: UpstreamLimit): UpstreamLimit {
  return (other.remaining ?? Infinity) < (one.remaining ?? Infinity) ? other : one;
}

function buildLookup(headers: AnswerHeaders): Lookup {
  if (hasMethod(headers, "get")) return (name) => (headers as Headers).get(name) ?? undefined;
  const values = new Map<string, string>();
  for (const [name, value] of Object.entries(headers ?? {})) {
    if (typeof value !== "string") continue;
    const key = name.toLowerCase();
    const before = values.get(key);
    values.set(key, before === undefined ? value : `${before}, ${value}`);
  }
  return (name) => values.get(name);
}
