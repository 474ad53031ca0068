import type { Readable } from "node:stream";
import type { runAggregator } from "zae-limiter/aggregator";
import type { openRepository } from "zae-limiter/open";

/** A stream that text is written to. */
export interface TextOutput {
  write(text: string): unknown;
  readonly isTTY?: boolean;
  readonly columns?: number;
}

/** What counts as an interrupt. */
export interface InterruptOptions {
  /**
   * A closed output counts as an interrupt too. It is noticed at the next write. For verbs that do
   * not end by themselves.
   */
  readonly orUnread?: boolean;
}

/**
 * The environment that the program uses, so that tests can run it in their own process.
 */
export interface Environment {
  readonly stdout: TextOutput;
  readonly stderr: TextOutput;
  readonly stdin: Readable & { readonly isTTY?: boolean };
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly nodeVersion: string;
  readonly openRepository: typeof openRepository;
  readonly runAggregator: typeof runAggregator;
  /**
   * Calls the listener when the program is asked to end, instead of ending it, until the function
   * that it returns is called. The second time, the program ends at once.
   */
  readonly onInterrupt: (listener: () => void, options?: InterruptOptions) => () => void;
  /** The time now, which relative times are counted from. */
  readonly nowMs: () => number;
  /** The SDK's notice about this version of Node, if it has given one. */
  readonly nodeNotice: () => string | undefined;
}
