import type { Estimate } from "./llm-call.ts";
import type { TokenUsage } from "./token-usage.ts";

/** How one call ended, and what it used. */
export interface MeteredRecord {
  /** The entity that made the call. */
  readonly entityId: string;
  /** The resource that was charged. */
  readonly resource: string;
  /** The model, as the provider knows it. */
  readonly model: string;
  /** The tokens that were reserved. */
  readonly estimate: Estimate;
  /** The tokens that were used: all zeros if the call failed. */
  readonly usage: TokenUsage;
  /**
   * Where the usage is from: reported by the provider, counted from the text that was received
   * (the input is then estimated), or estimated.
   */
  readonly source: "reported" | "counted" | "estimated";
  /**
   * How the call ended: complete, abandoned or aborted by its caller, cut off by the provider or
   * the network, stopped because nothing was left to take, or failed without an answer.
   */
  readonly end: "complete" | "abandoned" | "cut" | "stopped" | "failed";
  /** Milliseconds since the grant, by the repository's clock. */
  readonly durationMs: number;
}
