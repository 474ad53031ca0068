/* Takes from one shard of a bucket, and keeps what a call learns while it takes. */
import { divideAmounts } from "../../../core/bucket/decision.ts";
import type { BucketKey } from "../items/bucket-key.ts";
import { TableUnavailable } from "../table/table-errors.ts";
import type { BucketWriter } from "../write/bucket-writer.ts";
import type { AppliedOutcome, WriteIntent } from "../write/write-intent.ts";
import type { ReceiptPart, Refused, Taken, Undecided } from "./receipt.ts";
import type { WantedClaim } from "./wanted-claim.ts";

/** What one call learns while it takes from one bucket, over all its rounds. */
export interface TakeAttempt {
  /** Granted acquires to count. */
  readonly requests: number;
  /** 0 when the call takes from several buckets, so that this take may be undone. */
  readonly undone?: 0 | undefined;
  /** The order of the last request before the call began: older images are older than the call. */
  readonly begun: number;
  /** When the call began. */
  readonly begunMs: number;
  /** The shards that were throttled, if any: this call does not try them again. */
  throttled: Map<string, TableUnavailable> | undefined;
  /** Whether the home shard has yet to be ensured, which only the first round does. */
  wantsHome: boolean;
  /**
   * Whether the call has lost a race. From then on it is decided as of when it started: tokens
   * credited or given back since count, tokens merely earned since do not. Otherwise every call
   * that loses the race for the last token earns the next one on the way, and loses that race too.
   */
  isLate: boolean;
}

/** Notes that a shard was throttled. */
export function noteThrottled(
  attempt: TakeAttempt,
  { text }: BucketKey,
  error: TableUnavailable,
): void {
  (attempt.throttled ??= new Map()).set(text, error);
}

/** The time as of which an attempt is decided. */
export function asOfMs({ isLate, begunMs }: TakeAttempt, nowMs: number): number {
  return isLate ? Math.min(begunMs, nowMs) : nowMs;
}

/**
 * Takes all that a claim wants from one shard, or nothing; undecided when the shard is gone or
 * throttled. It is not `async`, like most on the path of every call: each such function takes half
 * a kilobyte and a microtask of its own.
 */
export function takeFromShard(
  claim: WantedClaim,
  key: BucketKey,
  { requests, undone }: Pick<TakeAttempt, "requests" | "undone">,
  writer: BucketWriter,
): Promise<Taken | Refused | Undecided> {
  const { costs, policy, isCascaded, isNamespaceRead, leave } = claim;
  const intent: WriteIntent = {
    kind: "take",
    costs,
    requests,
    undone,
    policy,
    isCascaded,
    isNamespaceRead,
    leave,
  };
  return writer.write(key, intent).then(
    (outcome) => {
      if (outcome.kind === "applied")
        return { kind: "taken", parts: [buildTakenPart(claim, key, requests, outcome)] };
      if (outcome.kind !== "refused") return { kind: "undecided", claim };
      const refused = { ...claim, policy: outcome.policy };
      return { kind: "refused", atMs: outcome.atMs, claim: refused };
    },
    (error: unknown) => {
      if (!(error instanceof TableUnavailable && error.throttled && !error.ambiguous)) throw error;
      return { kind: "undecided", claim, throttled: error };
    },
  );
}

function buildTakenPart(
  claim: WantedClaim,
  key: BucketKey,
  requests: number,
  { policy, incarnation, image }: AppliedOutcome,
): ReceiptPart {
  const { costs, isCascaded } = claim;
  const isSame =
    policy === claim.policy && claim.levels === undefined && policy.counts === undefined;
  const { amounts, unlimited } = isSame ? { amounts: costs } : divideAmounts(policy, costs);
  return {
    key,
    entityId: key.entityId,
    resource: key.resource,
    policy,
    amounts,
    unlimited,
    requests,
    isCascaded,
    incarnation,
    seen: image && { image },
  };
}
