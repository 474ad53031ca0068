/** Something that went wrong while a runner worked. The runner continues by itself. */
export type RunnerProblem =
  | {
      /** Something failed and will be tried again. Nothing is skipped. */
      readonly kind: "retry";
      /** The shard of the stream; undefined when it is about all of them. */
      readonly shardId: string | undefined;
      /** What went wrong. */
      readonly error: unknown;
      /** How often it has failed in a row. */
      readonly attempts: number;
      /** When it will be tried again. */
      readonly retryInMs: number;
    }
  | {
      /**
       * The stream dropped records of a shard, or all of it, before they were read: it keeps them
       * for a day. The runner continues with what is left.
       */
      readonly kind: "records-lost";
      /** The shard of the stream. */
      readonly shardId: string;
    };

const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 30_000;

/** The pause after a number of failures in a row: it doubles, up to half a minute. */
export function computePauseMs(attempts: number): number {
  // 2^10 reaches the longest pause; the bound keeps the power finite.
  return Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(attempts - 1, 10));
}
