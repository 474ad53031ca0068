/*
 * What a call costs, by how it ended:
 *
 *   usage of the whole answer reported   what was reported, however the answer ended
 *   complete, nothing reported           input as estimated, output as counted
 *   failed without an answer             nothing: everything is given back
 *   no answer, but perhaps the work      what was reserved
 *   abandoned or cut off                 input as reported or estimated, output as counted;
 *                                        not less than was reserved if `abandoned` is "kept"
 *   stopped                              the tokens taken so far
 */
import { getAmount, MAX_AMOUNT, NO_AMOUNTS, type Amounts } from "../core/amounts.ts";
import type { EndCost } from "../limiter/end-safely.ts";
import type { Estimate } from "./tokens/llm-call.ts";
import type { MeteredRecord } from "./tokens/metered-record.ts";
import { computeCost, type Metering } from "./tokens/metering.ts";
import { NO_TOKENS, type TokenUsage } from "./tokens/token-usage.ts";

/** How a call ended. */
export interface CallEnd {
  readonly end: MeteredRecord["end"];
  /** What the provider has reported, if anything. */
  readonly reported?: Partial<TokenUsage> | undefined;
  /** Whether `reported` covers the whole answer. */
  readonly isReportFinal?: boolean;
  /** Output tokens of the text so far; undefined if no answer began, or if it cannot be counted. */
  readonly counted?: number | undefined;
}

/** What the cost of a call depends on, besides its end. */
export interface Reservation {
  readonly metering: Metering;
  readonly estimate: Estimate;
  readonly abandoned: "counted" | "kept";
}

/** The cost of a call. */
export interface Settlement extends Pick<MeteredRecord, "usage" | "source"> {
  /** Totals by limit, or the charge as taken, or nothing at all. */
  readonly cost: EndCost;
}

/**
 * Computes what a call costs. No total is negative or above what a lease can be settled to, and
 * there is one for each limit of the metering.
 */
export function computeSettlement(call: CallEnd, reservation: Reservation): Settlement {
  const { metering, estimate, abandoned } = reservation;
  if (call.end === "failed") return { usage: NO_TOKENS, source: "estimated", cost: "give-back" };
  const reported = { ...NO_TOKENS, ...call.reported };
  if (call.isReportFinal === true && call.end !== "stopped")
    return {
      usage: reported,
      source: "reported",
      cost: toChargeable(computeCost(metering, reported)),
    };
  const estimated = { ...NO_TOKENS, ...estimate };
  if (call.counted === undefined)
    return { usage: estimated, source: "estimated", cost: "as taken" };
  const input = call.reported?.input ?? estimate.input;
  const usage = { ...reported, input, output: Math.max(call.counted, reported.output) };
  if (call.end === "stopped") return { usage, source: "counted", cost: "as taken" };
  const isKept = abandoned === "kept" && call.end !== "complete";
  const least = isKept ? computeCost(metering, estimated) : NO_AMOUNTS;
  return { usage, source: "counted", cost: toChargeable(computeCost(metering, usage), least) };
}

/** Raises totals to `least`, and cuts those that are too large: a provider may report anything. */
function toChargeable(cost: Amounts, least = NO_AMOUNTS): Amounts {
  const totals = Object.entries(cost).map(([name, amount]) => [
    name,
    Math.min(Math.max(amount, getAmount(least, name)), MAX_AMOUNT),
  ]);
  return Object.fromEntries(totals);
}
