/*
 * What a call costs, by how it ended:
 *
 *   usage of the whole answer reported   what was reported, however the answer ended
 *   complete, nothing reported           input as estimated, output as counted
 *   failed without an answer             nothing: everything is given back
 *   no answer, but perhaps the work      what was reserved
 *   abandoned or cut off                 input as reported or estimated, output as counted;
 *                                        not less than was reserved if `abandoned` is "kept"
 *   stopped                              what was taken
 */
import { amountOf, MAX_AMOUNT, type Amounts } from "../core/amounts.ts";
import type { Estimate } from "./tokens/llm-call.ts";
import type { MeteredRecord } from "./tokens/metered-record.ts";
import { costOf, type Metering } from "./tokens/metering.ts";
import { NO_TOKENS, type TokenUsage } from "./tokens/token-usage.ts";

/** How a call ended. */
export interface CallEnd {
  readonly end: MeteredRecord["end"];
  /** What the provider has reported, if anything. */
  readonly reported?: Partial<TokenUsage> | undefined;
  /** Whether that is the usage of the whole answer. */
  readonly isReportFinal?: boolean;
  /** Output tokens of what went by; undefined if no answer began, or if it cannot be counted. */
  readonly counted?: number | undefined;
}

/** What was reserved for a call. */
export interface Reservation {
  readonly metering: Metering;
  readonly estimate: Estimate;
  /** Everything that was taken, while the answer streamed too. */
  readonly taken: Amounts;
  readonly abandoned: "counted" | "kept";
}

/** What a call costs. */
export interface Settlement extends Pick<MeteredRecord, "usage" | "source"> {
  /** Totals by limit; undefined to give everything back. */
  readonly totals: Amounts | undefined;
}

/**
 * What a call costs. Nothing is negative, no limit of the metering is forgotten, and no total is
 * more than a lease can be settled to.
 */
export function settlementOf(call: CallEnd, reservation: Reservation): Settlement {
  const { metering, estimate, taken, abandoned } = reservation;
  if (call.end === "failed") return { usage: NO_TOKENS, source: "estimated", totals: undefined };
  const reported = { ...NO_TOKENS, ...call.reported };
  if (call.isReportFinal === true && call.end !== "stopped")
    return { usage: reported, source: "reported", totals: chargeableCostOf(metering, reported) };
  if (call.counted === undefined) {
    const usage = { ...NO_TOKENS, ...estimate };
    return { usage, source: "estimated", totals: takenOf(metering, taken) };
  }
  const input = call.reported?.input ?? estimate.input;
  const output = Math.max(call.counted, reported.output);
  const usage = { ...reported, input, output };
  if (call.end === "stopped") return { usage, source: "counted", totals: takenOf(metering, taken) };
  const cost = chargeableCostOf(metering, usage);
  const isKept = abandoned === "kept" && call.end !== "complete";
  return { usage, source: "counted", totals: isKept ? larger(cost, taken) : cost };
}

/** A provider may report anything, and an answer must be settled whatever it says. */
function chargeableCostOf(metering: Metering, usage: TokenUsage): Amounts {
  return mapAmounts(costOf(metering, usage), (_, amount) => Math.min(amount, MAX_AMOUNT));
}

/** A lease also knows limits that are not metered. They are not settled. */
function takenOf(metering: Metering, taken: Amounts): Amounts {
  return larger(
    mapAmounts(costOf(metering, NO_TOKENS), () => 0),
    taken,
  );
}

function larger(cost: Amounts, taken: Amounts): Amounts {
  return mapAmounts(cost, (name, amount) => Math.max(amount, amountOf(taken, name)));
}

function mapAmounts(amounts: Amounts, map: (name: string, amount: number) => number): Amounts {
  return Object.fromEntries(
    Object.entries(amounts).map(([name, amount]) => [name, map(name, amount)]),
  );
}
