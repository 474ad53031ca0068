/*
 * What calls should have cost, computed from their scripts alone: the table of the guide, written
 * down a second time, with whole numbers of millionths. It shares no code with the library.
 */
import type { MeteredRecord, TokenUsage } from "zae-limiter/llm";
import { METERINGS, type Script } from "./scripts.ts";

type Amounts = Readonly<Record<string, number>>;

/** What became of a call that was granted. */
export interface Expected {
  readonly totals: Amounts;
  readonly ends: readonly MeteredRecord["end"][];
  readonly source: MeteredRecord["source"];
}

/** What was reserved for a call. */
export function reservedFor(script: Script): Amounts {
  return computePrice(script, script.estimate);
}

/** What a call should cost that was not stopped. */
export function computeExpected(script: Script): Expected {
  const { end, estimate, partBytes, report } = script;
  const bytes = partBytes.reduce((sum, part) => sum + part, 0);
  const counted = Math.floor((bytes + 3) / 4);
  const asReserved = { totals: reservedFor(script), source: "estimated" as const };
  const nothing = {
    totals: Object.fromEntries(Object.keys(METERINGS[script.metering]).map((name) => [name, 0])),
    ends: ["failed" as const],
    source: "estimated" as const,
  };
  switch (end) {
    case "answers with usage":
      return { totals: computePrice(script, report!), ends: ["complete"], source: "reported" };
    case "answers without usage":
      return {
        totals: computePrice(script, { input: estimate.input, output: counted }),
        ends: ["complete"],
        source: "counted",
      };
    case "answers something that cannot be counted":
      return { ...asReserved, ends: ["complete"] };
    case "answers with an error":
    case "throws a status":
    case "throws a refused connection":
      return nothing;
    case "throws a lost connection":
      return { ...asReserved, ends: ["cut"] };
    case "throws because the caller aborted":
      return { ...asReserved, ends: ["abandoned"] };
    default:
      return expectedOfStream(script, counted);
  }
}

function expectedOfStream(script: Script, counted: number): Expected {
  const { end, estimate, firstReport, report, abandoned } = script;
  const isComplete = end === "complete" || end === "complete, then cancelled";
  // The usage of the whole answer is known, so it does not matter what happened to the rest.
  if (report !== undefined)
    return { totals: computePrice(script, report), ends: ["complete"], source: "reported" };
  const used =
    firstReport === undefined
      ? { input: estimate.input, output: counted }
      : { ...firstReport, output: Math.max(counted, firstReport.output) };
  const price = computePrice(script, used);
  if (isComplete) return { totals: price, ends: ["complete"], source: "counted" };
  const reserved = reservedFor(script);
  const kept = Object.fromEntries(
    Object.entries(price).map(([name, amount]) => [name, Math.max(amount, reserved[name]!)]),
  );
  return {
    totals: abandoned === "kept" ? kept : price,
    ends: [end === "broken" || end === "too early" ? "cut" : "abandoned"],
    source: "counted",
  };
}

function computePrice({ metering }: Script, used: Partial<TokenUsage>): Amounts {
  const price: Record<string, number> = {};
  for (const [name, weights] of Object.entries(METERINGS[metering])) {
    let millionths = 0n;
    for (const [kind, weight] of Object.entries<number>(weights)) {
      const count = kind === "requests" ? 1 : (used[kind as keyof TokenUsage] ?? 0);
      millionths += BigInt(weight) * BigInt(count);
    }
    price[name] = Number((millionths + 999_999n) / 1_000_000n);
  }
  return price;
}
