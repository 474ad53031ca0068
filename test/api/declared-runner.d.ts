/* What `zae-limiter/aggregator` has for running without Lambda (ADR 015); declared.d.ts has the rest. */

declare module "declared/zae-limiter/aggregator" {
  export interface RunnerCounts {
    readonly records: number;
    readonly counted: number;
    readonly skipped: number;
    readonly snapshotWrites: number;
    readonly archived: number;
    readonly dropped: number;
    readonly splits: number;
    readonly merges: number;
    readonly checkpoints: number;
  }
  export interface RunnerProgress extends RunnerCounts {
    readonly lagMs: number;
    readonly shardsHeld: number;
    readonly shardsSeen: number;
  }
  export interface RunnerReport extends RunnerCounts {
    readonly ended: "counted" | "stopped";
  }
  export type RunnerProblem =
    | {
        readonly kind: "retry";
        readonly shardId: string | undefined;
        readonly error: unknown;
        readonly attempts: number;
        readonly retryInMs: number;
      }
    | { readonly kind: "records-lost"; readonly shardId: string };
  export interface RunnerOptions extends AggregatorOptions {
    readonly once?: boolean;
    readonly signal?: AbortSignal;
    readonly onProgress?: (progress: RunnerProgress) => void;
    readonly onProblem?: (problem: RunnerProblem) => void;
  }
  export function runAggregator(options?: RunnerOptions): Promise<RunnerReport>;
  export function tableOptions(
    url: string,
  ): Pick<AggregatorOptions, "stack" | "region" | "endpointUrl">; // "dynamodb://eu-west-1/my-stack"
}
