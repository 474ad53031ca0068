import { isRecord, type Amounts } from "../../core/amounts.ts";
import { ValidationError } from "../../core/errors.ts";
import { limitName } from "../../core/identifiers.ts";
import { buildUnknownOptionError } from "../../core/options.ts";
import { NO_TOKENS, type TokenKind, type TokenUsage } from "./token-usage.ts";

/**
 * What each limit counts: a weight for each kind of token. A kind that is not named weighs nothing.
 * Costs are rounded up to whole tokens.
 */
export type Metering = Readonly<Record<string, Readonly<Partial<Record<TokenKind, number>>>>>;

/**
 * How providers count. OpenAI: requests (`rpm`), and tokens of every kind (`tpm`). Anthropic:
 * requests (`rpm`), input without what was read from a cache (`itpm`), and output (`otpm`).
 * @example limitFetch({ limiter, entity: "key-1", metering: METERING.anthropic });
 */
export const METERING = {
  openai: {
    rpm: { requests: 1 },
    tpm: { input: 1, cachedInput: 1, cacheWriteInput: 1, output: 1 },
  },
  anthropic: {
    rpm: { requests: 1 },
    itpm: { input: 1, cacheWriteInput: 1 },
    otpm: { output: 1 },
  },
} as const satisfies Record<string, Metering>;

/** Weights are multiples of one part in this many, so that sums are exact. */
const PARTS = 1_000_000;

const MAX_WEIGHT = 1_000_000;

const KINDS: ReadonlySet<string> = new Set(["requests", ...Object.keys(NO_TOKENS)]);

/** Throws for an invalid metering. */
export function checkMetering(metering: unknown): void {
  const isAllOfThem = metering === METERING;
  if (!isRecord(metering) || isAllOfThem || Object.keys(metering).length === 0)
    throw new ValidationError(
      "metering",
      isAllOfThem ? undefined : metering,
      "must say what each limit counts, such as METERING.openai or { tpm: { input: 1, output: 1 } }",
    );
  for (const [name, weights] of Object.entries(metering)) {
    const field = `metering.${name}`;
    limitName(name, field);
    if (!isRecord(weights))
      throw new ValidationError(field, weights, "must be weights, such as { input: 1, output: 1 }");
    for (const [kind, weight] of Object.entries(weights)) {
      if (!KINDS.has(kind)) throw buildUnknownOptionError(kind, KINDS, field);
      if (weight !== undefined && !isWeight(weight))
        throw new ValidationError(
          `${field}.${kind}`,
          weight,
          `must be from 0 to ${MAX_WEIGHT}, with at most six decimals`,
        );
    }
  }
}

/** Computes the cost of one request with these tokens, by limit. */
export function computeCost(metering: Metering, usage: TokenUsage): Amounts {
  const cost: Record<string, number> = {};
  for (const [name, weights] of Object.entries(metering)) {
    let parts = toMillionths(weights.requests);
    for (const kind in NO_TOKENS)
      parts += toMillionths(weights[kind as TokenKind]) * usage[kind as keyof TokenUsage];
    cost[name] = Math.ceil(parts / PARTS);
  }
  return cost;
}

/** Computes how many tokens of a weight a cost can pay for. */
export function computeMostTokens(weight: number | undefined, cost: number): number {
  const parts = toMillionths(weight);
  return parts === 0 ? Infinity : Math.floor((cost * PARTS) / parts);
}

function isWeight(weight: unknown): boolean {
  return (
    typeof weight === "number" &&
    weight >= 0 &&
    weight <= MAX_WEIGHT &&
    Math.abs(weight * PARTS - Math.round(weight * PARTS)) < 1e-3
  );
}

/** Converts a weight to whole millionths: 0.07 × 100 must not be more than 7. */
function toMillionths(weight = 0): number {
  return Math.round(weight * PARTS);
}
