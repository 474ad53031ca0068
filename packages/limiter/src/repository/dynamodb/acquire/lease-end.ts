/*
 * The end of a lease: what it gives back or charges, written to the shards that it took from.
 *
 *   settle, giveBack ──▶ one write for each shard ──▶ done
 *                               │
 *                               └──▶ the shard was split or merged since, or cannot pay: read all
 *                                    shards, and write to those that it concerns now
 *                                    (divided-end.ts)
 *
 * A receipt ends once. When a write fails the caller may try again: what is done is not repeated,
 * and the history of each write keeps it from happening twice.
 */
import { addAmounts, inMilli, NO_AMOUNTS } from "../../../core/amounts.ts";
import {
  hasAll,
  knows,
  negated,
  type DividedAmounts,
  type Levels,
} from "../../../core/bucket/decision.ts";
import { settlementOf } from "../../../core/bucket/settlement.ts";
import type { Receipt, ResourceAmounts } from "../../port.ts";
import type { PolicySource } from "../../store.ts";
import { wholeMs, type Clock } from "../../system-clock.ts";
import { onlyCharged, type Costs } from "../write/batch-decision.ts";
import { siblingKey } from "../items/bucket-key.ts";
import type { BucketWriter } from "../write/bucket-writer.ts";
import { dividedEnd } from "./divided-end.ts";
import type { KnownBuckets } from "../cache/known-buckets.ts";
import type { ReceiptPart } from "./receipt.ts";
import type { RepeatableOperation } from "../write/write-intent.ts";

/** What was taken for a lease, and how it ends. */
export interface DynamoReceipt extends Receipt {
  readonly parts: ReceiptPart[];
  /** Set by the first end; a second one only finishes what is left. */
  ends: readonly EndWrite[] | undefined;
}

/** What the end of a lease writes to one shard of a bucket. */
export interface EndWrite {
  readonly part: ReceiptPart;
  readonly costs: Costs;
  /** What is only counted. */
  readonly unlimited: Costs | undefined;
  readonly requests: number;
  /** Whether this is the shard's part of an overrun that one shard could not pay alone. */
  readonly mayOwe: boolean;
  readonly operation: RepeatableOperation;
  /** Only `LeaseEnds` changes it. */
  state: EndState;
}

/** Not written yet; replaced by writes to other shards; or done. */
type EndState =
  | { readonly kind: "open" }
  | { readonly kind: "divided"; readonly into: readonly EndWrite[] }
  | { readonly kind: "done" };

/** Ends leases. */
export class LeaseEnds {
  readonly #known: KnownBuckets;
  readonly #writer: BucketWriter;
  readonly #policies: Pick<PolicySource, "levels">;
  readonly #clock: Clock;

  constructor(options: {
    readonly known: KnownBuckets;
    readonly writer: BucketWriter;
    readonly policies: Pick<PolicySource, "levels">;
    readonly clock: Clock;
  }) {
    this.#known = options.known;
    this.#policies = options.policies;
    this.#writer = options.writer;
    this.#clock = options.clock;
  }

  /** Writes the differences between what was taken and what it really cost. */
  async settle(receipt: DynamoReceipt, deltas: readonly ResourceAmounts[]): Promise<void> {
    const lacking = parentsLacking(receipt.parts, deltas);
    const levels = lacking.length === 0 ? NO_LEVELS : await this.#levelsOf(lacking);
    receipt.ends ??= endsOf(
      deltas.flatMap(({ resource, amounts }) =>
        settlementOf(receipt.parts, resource, inMilli(amounts), (parent, name) =>
          knows(levels.get(parent) ?? [], name),
        ),
      ),
    );
    await this.#writeAll(receipt.ends);
  }

  /** Puts everything back. */
  async giveBack(receipt: DynamoReceipt): Promise<void> {
    receipt.ends ??= endsOf(
      receipt.parts.toReversed().map((part) => {
        const { amounts, unlimited } = negatedPart(part);
        return { part, amounts, unlimited, requests: -part.requests };
      }),
    );
    await this.#writeAll(receipt.ends);
  }

  /** Puts back what one take took for a call that is not granted. */
  async undo(part: ReceiptPart): Promise<void> {
    const { amounts, unlimited } = negatedPart(part);
    await this.#write(newEnd(part, amounts, { unlimited, requests: -part.requests }));
  }

  async #levelsOf(parts: readonly ReceiptPart[]): Promise<ReadonlyMap<ReceiptPart, Levels>> {
    const levels = parts.map(({ entityId, resource }) => this.#policies.levels(entityId, resource));
    const read = await Promise.all(levels);
    return new Map(parts.map((part, index) => [part, read[index]!]));
  }

  /** Waits for all writes, so that none is left running, then fails with the first error. */
  async #writeAll(ends: readonly EndWrite[]): Promise<void> {
    const results = await Promise.allSettled(ends.map((end) => this.#write(end)));
    const failed = results.find((result) => result.status === "rejected");
    if (failed !== undefined) throw failed.reason;
  }

  async #write(end: EndWrite): Promise<void> {
    if (end.state.kind === "open" && !(await this.#writeToShard(end))) {
      const { shards } = await this.#known.readAll(siblingKey(end.part.key, 0));
      const isSame = shards[0]?.image.creation === end.part.incarnation.creation;
      const parts = isSame ? dividedEnd(leftOf(end), shards, wholeMs(this.#clock)) : [];
      const into = parts.map(({ part, costs, unlimited, requests }) =>
        newEnd(part, costs, { unlimited, requests, mayOwe: true }),
      );
      end.state = { kind: "divided", into };
    }
    if (end.state.kind === "divided") await this.#writeAll(end.state.into);
    end.state = DONE;
  }

  /**
   * Returns whether the shard that was taken from carried the write out, or there is no bucket any
   * more. A give-back to a shard that was split since, and a charge that the shard cannot pay,
   * concern other shards too. A shard that is gone may have been merged into another; only shard 0
   * exists for as long as the bucket.
   */
  async #writeToShard(end: EndWrite): Promise<boolean> {
    const { part, costs, unlimited, requests, mayOwe, operation } = end;
    const { key, policy, incarnation, isCascaded } = part;
    const isOverrun = [costs, unlimited ?? NO_AMOUNTS].some(hasPositive);
    const kind = isOverrun ? "overrun" : "giveBack";
    if (this.#known.imageOf(key) === undefined) await this.#known.read(key);
    const outcome = await this.#writer.write(key, {
      kind,
      costs,
      unlimited,
      isCascaded,
      requests,
      policy,
      incarnation,
      mayOwe,
      operation,
    });
    return outcome.kind !== "split" && !(outcome.kind === "gone" && key.shard > 0);
  }
}

const NO_LEVELS: ReadonlyMap<ReceiptPart, Levels> = new Map();

/** What was taken from parents whose policies lack a name that is settled. */
function parentsLacking(
  parts: readonly ReceiptPart[],
  deltas: readonly ResourceAmounts[],
): readonly ReceiptPart[] {
  return parts.filter(
    ({ entityId, resource, policy }) =>
      entityId !== parts[0]!.entityId &&
      deltas.some((delta) => delta.resource === resource && !hasAll(policy, delta.amounts)),
  );
}

/** What is left of an end whose give-back may have been written to a shard that is gone. */
function leftOf(end: EndWrite): EndWrite {
  return end.operation.history?.onlyCharges === true ? onlyCharged(end) : end;
}

function hasPositive(costs: Costs): boolean {
  return Object.values(costs).some((cost) => cost > 0);
}

function negatedPart({ amounts, unlimited }: ReceiptPart): DividedAmounts {
  return { amounts: negated(amounts), unlimited: unlimited && negated(unlimited) };
}

const OPEN: EndState = { kind: "open" };
const DONE: EndState = { kind: "done" };

/**
 * Makes one write for each shard, however often the lease took from it, and more where one sum
 * would not be exact.
 */
export function endsOf(
  shares: readonly {
    readonly part: ReceiptPart;
    readonly amounts: Costs;
    readonly unlimited?: Costs | undefined;
    readonly requests?: number;
  }[],
): readonly EndWrite[] {
  const byShard = new Map<string, EndWrite>();
  const complete: EndWrite[] = [];
  for (const { part, amounts, unlimited = NO_AMOUNTS, requests = 0 } of shares) {
    // Takes before and after a split belong to different classes under one key; takes before and
    // after a deletion belong to two buckets.
    const { creation, divisor, splitAtMs } = part.incarnation;
    const id = `${part.key.text}/${creation}/${divisor}/${splitAtMs}`;
    const held = byShard.get(id);
    const costs = addAmounts(held?.costs ?? NO_AMOUNTS, amounts);
    const counted = addAmounts(held?.unlimited ?? NO_AMOUNTS, unlimited);
    if (held === undefined || !isExact(costs) || !isExact(counted)) {
      if (held !== undefined) complete.push(held);
      byShard.set(id, newEnd(part, amounts, { unlimited, requests }));
    } else {
      const sum = { unlimited: counted, requests: held.requests + requests };
      byShard.set(id, newEnd(held.part, costs, sum));
    }
  }
  return [...complete, ...byShard.values()];
}

function newEnd(
  part: ReceiptPart,
  costs: Costs,
  {
    unlimited,
    requests,
    mayOwe = false,
  }: {
    readonly unlimited: Costs | undefined;
    readonly requests: number;
    readonly mayOwe?: boolean;
  },
): EndWrite {
  const isCounting = unlimited !== undefined && Object.keys(unlimited).length > 0;
  return {
    part,
    costs,
    unlimited: isCounting ? unlimited : undefined,
    requests,
    mayOwe,
    operation: { history: undefined },
    state: OPEN,
  };
}

/**
 * A lease that takes again and again may take more than the range of safe integers, and no batch
 * carries a cost beyond that range.
 */
function isExact(costs: Costs): boolean {
  return Object.values(costs).every((cost) => Number.isSafeInteger(cost));
}
