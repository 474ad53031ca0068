import type { Estimate } from "./llm-call.ts";
import type { TokenUsage } from "./token-usage.ts";

/** What became of one call. */
export interface MeteredRecord {
  /** Who made the call. */
  readonly entityId: string;
  /** What was used. */
  readonly resource: string;
  /** The model, as the provider knows it. */
  readonly model: string;
  /** What was reserved. */
  readonly estimate: Estimate;
  /** What was used: all zeros if the call failed. */
  readonly usage: TokenUsage;
  /**
   * Where the usage is from: reported by the provider, counted from the text that went by (the
   * input is then estimated), or estimated.
   */
  readonly source: "reported" | "counted" | "estimated";
  /**
   * How the call ended: to its end, left or aborted by its caller, cut off by the provider or the
   * network, stopped because nothing was left to take, or failed without an answer.
   */
  readonly end: "complete" | "abandoned" | "cut" | "stopped" | "failed";
  /** How long it took from the grant on, by the repository's clock. */
  readonly durationMs: number;
}
