import { hasMethod } from "../../core/options.ts";
import {
  parseCount,
  parseDuration,
  parseMilliseconds,
  parseRetryAfter,
  untilTimestamp,
} from "./header-values.ts";

/** One limit of a provider, as its headers tell it. What they do not tell is undefined. */
export interface UpstreamLimit {
  /** How much it holds. */
  readonly limit: number | undefined;
  /** How much is left. */
  readonly remaining: number | undefined;
  /** Milliseconds until it is full again. */
  readonly fullAfterMs: number | undefined;
}

/** The limits of a provider, as the headers of one answer tell them. */
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

/** Headers of an answer: an object of fetch, or a record with names in any case. */
export type AnswerHeaders = Headers | Readonly<Record<string, string>>;

/** Reads a header by its name in lower case. */
type Lookup = (name: string) => string | undefined;

/** Where each kind of limit is read from: what OpenAI and what Anthropic call it. */
const KINDS = [
  { kind: "requests", openai: ["requests"], anthropic: "requests" },
  { kind: "tokens", openai: ["tokens", "project-tokens"], anthropic: "tokens" },
  { kind: "inputTokens", openai: [], anthropic: "input-tokens" },
  { kind: "outputTokens", openai: [], anthropic: "output-tokens" },
] as const satisfies readonly { readonly kind: UpstreamKind; readonly [of: string]: unknown }[];

/**
 * Reads `x-ratelimit-*`, `anthropic-ratelimit-*`, `retry-after-ms` and `retry-after`. A value that
 * makes no sense is undefined, and so is the result if the headers say nothing. Never throws.
 * @example const seen = readUpstreamLimits(response.headers, Date.now());
 */
export function readUpstreamLimits(
  headers: AnswerHeaders,
  nowMs: number,
): UpstreamLimits | undefined {
  const lookup = lookupIn(headers);
  const retryAfterMs =
    parseMilliseconds(lookup("retry-after-ms")) ?? parseRetryAfter(lookup("retry-after"), nowMs);
  const seen = tightestLimits(retryAfterMs, ({ openai, anthropic }) => [
    ...openai.map((name) => openaiLimit(lookup, name)),
    anthropicLimit(lookup, anthropic, nowMs),
  ]);
  return Object.keys(seen).length === 0 ? undefined : seen;
}

function openaiLimit(lookup: Lookup, name: string): UpstreamLimit | undefined {
  return parseUpstreamLimit(
    lookup(`x-ratelimit-limit-${name}`),
    lookup(`x-ratelimit-remaining-${name}`),
    parseDuration(lookup(`x-ratelimit-reset-${name}`)),
  );
}

function anthropicLimit(lookup: Lookup, name: string, nowMs: number): UpstreamLimit | undefined {
  return parseUpstreamLimit(
    lookup(`anthropic-ratelimit-${name}-limit`),
    lookup(`anthropic-ratelimit-${name}-remaining`),
    untilTimestamp(lookup(`anthropic-ratelimit-${name}-reset`), nowMs),
  );
}

function parseUpstreamLimit(
  limitText: string | undefined,
  remainingText: string | undefined,
  fullAfterMs: number | undefined,
): UpstreamLimit | undefined {
  const limit = parseCount(limitText) || undefined;
  const left = parseCount(remainingText);
  // Nothing left of a limit that makes no sense itself means that nothing is known.
  const isMeaningless = left === 0 && limitText !== undefined && limit === undefined;
  const remaining = isMeaningless ? undefined : left;
  if (limit === undefined && remaining === undefined && fullAfterMs === undefined) return undefined;
  return { limit, remaining, fullAfterMs };
}

/** What two answers tell: the limits of which less is left, and the longer wait. */
export function strictest(one: UpstreamLimits, other: UpstreamLimits): UpstreamLimits {
  const longest = Math.max(one.retryAfterMs ?? 0, other.retryAfterMs ?? 0);
  return tightestLimits(longest || undefined, ({ kind }) => [one[kind], other[kind]]);
}

/**
 * Of each kind, the limit of which less is left: a call may count against two, a project's and its
 * owner's.
 */
function tightestLimits(
  retryAfterMs: number | undefined,
  readLimit: (source: (typeof KINDS)[number]) => readonly (UpstreamLimit | undefined)[],
): UpstreamLimits {
  const limits: Partial<Record<UpstreamKind, UpstreamLimit>> = {};
  for (const source of KINDS) {
    const told = readLimit(source).filter((limit) => limit !== undefined);
    if (told.length > 0) limits[source.kind] = told.reduce(tighter);
  }
  return { ...limits, ...(retryAfterMs !== undefined && { retryAfterMs }) };
}

function tighter(one: UpstreamLimit, other: UpstreamLimit): UpstreamLimit {
  return (other.remaining ?? Infinity) < (one.remaining ?? Infinity) ? other : one;
}

function lookupIn(headers: AnswerHeaders): Lookup {
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
