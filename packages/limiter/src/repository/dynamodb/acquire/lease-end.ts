/*
 * The end of a lease: what it gives back or charges, written to the shards that it took from. And
 * what is charged without a lease, to a shard of each of its buckets.
 *
 *   settle, giveBack ──▶ one write for each shard ──▶ done
 *   charge                      │
 *                               └──▶ the shard was split or merged since, or cannot pay: read all
 *                                    shards, and write to those that it concerns now
 *                                    (divide-end.ts)
 *
 * A receipt ends once. When a write fails the caller may try again: what is done is not repeated,
 * and the history of each write keeps it from happening twice. A charge has no receipt, so it is
 * tried again here.
 */
import { addAmounts, inMilli, NO_AMOUNTS } from "../../../core/amounts.ts";
import { RateLimiterUnavailable } from "../../../core/errors.ts";
import {
  hasAll,
  takesAnything,
  knows,
  negateDivided,
  type Levels,
} from "../../../core/bucket/decision.ts";
import { countAmounts } from "../../../core/bucket/counted-amounts.ts";
import { allocateSettlement } from "../../../core/bucket/settlement.ts";
import type { Receipt, ResourceAmounts } from "../../port.ts";
import type { PolicySource } from "../../store.ts";
import { wholeMs, type Clock } from "../../system-clock.ts";
import { onlyCharged, type Costs } from "../write/batch-decision.ts";
import { buildSiblingKey, type BucketKey } from "../items/bucket-key.ts";
import type { BucketWriter } from "../write/bucket-writer.ts";
import { applyPolicy, fitsShard } from "./fit.ts";
import { divideEnd, type EndTarget } from "./divide-end.ts";
import type { KnownBuckets, KnownShard } from "../cache/known-buckets.ts";
import type { PolicyResolver } from "../cache/policy-resolver.ts";
import type { ReceiptPart } from "./receipt.ts";
import type { RepeatableOperation } from "../write/write-intent.ts";
import { fromHome } from "./take-from-shards.ts";
import type { WantedClaim } from "./wanted-claim.ts";

/** The tokens taken for a lease, and how it ends. */
export interface DynamoReceipt extends Receipt {
  readonly parts: ReceiptPart[];
  /** Set by the first end; a second one only finishes what is left. */
  ends: readonly EndWrite[] | undefined;
}

/** What the end of a lease, or a charge, writes to one shard of a bucket. */
export interface EndWrite {
  readonly part: EndTarget;
  readonly costs: Costs;
  /** What is only counted. */
  readonly unlimited: Costs | undefined;
  readonly requests: number;
  /** 1 when it undoes a take of a call that another bucket refused. */
  readonly undone: 1 | undefined;
  /** Whether this is the shard's part of what one shard could not pay alone. */
  readonly mayOwe: boolean;
  readonly operation: RepeatableOperation;
  /** Set on what is charged without a lease. */
  readonly claim: WantedClaim | undefined;
  /** Only `LeaseEnds` changes it. */
  state: EndState;
}

/** Not written yet; replaced by writes to other shards; or done. */
type EndState =
  | { readonly kind: "open" }
  | { readonly kind: "divided"; readonly into: readonly EndWrite[] }
  | { readonly kind: "done" };

/**
 * Attempts of one charge. Each write is retried as often as any request; further attempts are for a
 * store that has just come back, as at the end of a lease.
 */
const CHARGE_ATTEMPTS = 3;

/** Ends leases, and charges without one. */
export class LeaseEnds {
  readonly #known: KnownBuckets;
  readonly #writer: BucketWriter;
  readonly #resolver: PolicyResolver;
  readonly #homeNumber: number;
  readonly #policies: Pick<PolicySource, "levels">;
  readonly #clock: Clock;

  constructor(options: {
    readonly known: KnownBuckets;
    readonly writer: BucketWriter;
    readonly resolver: PolicyResolver;
    /** Which shard a charge is written to: this modulo the count. */
    readonly homeNumber: number;
    readonly policies: Pick<PolicySource, "levels">;
    readonly clock: Clock;
  }) {
    this.#known = options.known;
    this.#resolver = options.resolver;
    this.#homeNumber = options.homeNumber;
    this.#policies = options.policies;
    this.#writer = options.writer;
    this.#clock = options.clock;
  }

  /** Writes the differences between the tokens taken and the real cost. */
  async settle(receipt: DynamoReceipt, deltas: readonly ResourceAmounts[]): Promise<void> {
    const lacking = parentsLacking(receipt.parts, deltas);
    const levels = lacking.length === 0 ? NO_LEVELS : await this.#readLevels(lacking);
    receipt.ends ??= buildEnds(
      deltas.flatMap(({ resource, amounts }) =>
        allocateSettlement(receipt.parts, resource, inMilli(amounts), (parent, name) =>
          knows([parent.policy.defaults, ...(levels.get(parent) ?? [])], name),
        ),
      ),
    );
    await this.#writeAll(receipt.ends);
  }

  /** Puts everything back. */
  async giveBack(receipt: DynamoReceipt): Promise<void> {
    receipt.ends ??= buildEnds(
      receipt.parts.toReversed().map((part) => {
        const { amounts, unlimited } = negateDivided(part);
        return { part, amounts, unlimited, requests: -part.requests };
      }),
    );
    await this.#writeAll(receipt.ends);
  }

  /** Puts back what one take took for a call that is not granted. */
  async undo(part: ReceiptPart): Promise<void> {
    const { amounts, unlimited } = negateDivided(part);
    await this.#write(newEnd(part, amounts, { unlimited, requests: -part.requests, undone: 1 }));
  }

  /**
   * Charges each bucket once, even into debt. If that fails, some may have been charged, and the
   * error says so.
   */
  async charge(claims: readonly WantedClaim[]): Promise<void> {
    const ends = claims.filter(takesAnything).map((claim) => {
      const { costs, policy, isCascaded } = claim;
      const part = { key: this.#findPayer(claim), policy, isCascaded, incarnation: undefined };
      return newEnd(part, costs, { unlimited: undefined, requests: 0, claim });
    });
    for (let attempt = 1; ; attempt += 1)
      try {
        return await this.#writeAll(ends);
      } catch (error) {
        const isUnavailable = error instanceof RateLimiterUnavailable;
        if (isUnavailable && attempt < CHARGE_ATTEMPTS) continue;
        // Denied, for example: the caller may charge again once that is fixed.
        if (!isUnavailable && ends.every(isUnwritten)) throw error;
        throw buildChargeError(error as Error, ends);
      }
  }

  /** The shard that a charge goes to: from home on, the first that can pay it, or else home. */
  #findPayer(claim: WantedClaim): BucketKey {
    const { key } = claim;
    if (this.#known.getCount(key) === 1) return key;
    const nowMs = wholeMs(this.#clock);
    const shards = fromHome(this.#known.get(key), this.#homeNumber);
    const payer = shards.find(({ image }) => fitsShard(claim, image, nowMs)) ?? shards[0];
    return payer?.key ?? key;
  }

  async #readLevels(parts: readonly ReceiptPart[]): Promise<ReadonlyMap<ReceiptPart, Levels>> {
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
    if (end.state.kind === "open" && !(await this.#writeToShard(end)))
      end.state = { kind: "divided", into: await this.#divideEnd(end) };
    if (end.state.kind === "divided") await this.#writeAll(end.state.into);
    end.state = DONE;
  }

  async #divideEnd(end: EndWrite): Promise<readonly EndWrite[]> {
    const { part, claim, undone } = end;
    const first = buildSiblingKey(part.key, 0);
    const { shards } = await this.#known.readAll(first);
    const nowMs = wholeMs(this.#clock);
    let divided: ReturnType<typeof divideEnd> = [];
    // A charge to a bucket that was deleted meanwhile begins the next one.
    if (claim !== undefined && shards.length === 0)
      divided = [{ ...end, part: { ...part, key: first } }];
    else if (claim !== undefined) divided = await this.#divideCharge(end, claim, shards);
    else if (shards[0]?.image.creation === part.incarnation!.creation)
      divided = divideEnd(toRemaining(end), shards, nowMs);
    return divided.map(({ part: target, costs, unlimited, requests }) =>
      newEnd(target, costs, { unlimited, requests, undone, claim, mayOwe: true }),
    );
  }

  /** Divides a charge, by the limits that its parts will bring the shards under. */
  async #divideCharge(
    end: EndWrite,
    claim: WantedClaim,
    shards: readonly KnownShard[],
  ): Promise<ReturnType<typeof divideEnd>> {
    const policy = await this.#resolver.resolveForAll(claim.policy, shards);
    const nowMs = wholeMs(this.#clock);
    const current = shards.map((shard) => {
      const bucket = applyPolicy(policy, shard.image, nowMs);
      return { ...shard, image: { ...shard.image, bucket } };
    });
    const whole = { ...end, costs: countAmounts(policy, end.costs) };
    // What a part names by limit is not counted for another limit again.
    const none = Object.fromEntries(Array.from(policy.counts?.keys() ?? [], (name) => [name, 0]));
    return divideEnd(whole, current, nowMs).map(({ part, costs, unlimited, requests }) => {
      return { part, costs: { ...none, ...costs }, unlimited, requests };
    });
  }

  /**
   * Returns whether the shard that was taken from carried the write out, or there is no bucket any
   * more. A give-back to a shard that was split since, and a charge that the shard cannot pay,
   * concern other shards too. A shard that is gone may have been merged into another; only shard 0
   * exists for as long as the bucket.
   */
  async #writeToShard(end: EndWrite): Promise<boolean> {
    const { part, costs, unlimited, requests, undone, claim, mayOwe, operation } = end;
    const { key, policy, incarnation, isCascaded } = part;
    const kind = claim === undefined ? kindOfEnd(end) : "charge";
    // A charge creates a bucket that is missing.
    if (claim === undefined && this.#known.getImage(key) === undefined) await this.#known.read(key);
    const outcome = await this.#writer.write(key, {
      kind,
      costs,
      unlimited,
      isCascaded,
      requests,
      undone,
      policy,
      incarnation,
      mayOwe,
      isNamespaceRead: claim?.isNamespaceRead,
      operation,
    });
    return outcome.kind !== "split" && !(outcome.kind === "gone" && key.shard > 0);
  }
}

const NO_LEVELS: ReadonlyMap<ReceiptPart, Levels> = new Map();

/** The parts taken from parents whose policies lack a name that is settled. */
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
function toRemaining(end: EndWrite): EndWrite {
  return end.operation.history?.onlyCharges === true ? onlyCharged(end) : end;
}

function kindOfEnd({ costs, unlimited = NO_AMOUNTS }: EndWrite): "overrun" | "giveBack" {
  return [costs, unlimited].some(hasPositive) ? "overrun" : "giveBack";
}

function hasPositive(costs: Costs): boolean {
  return Object.values(costs).some((cost) => cost > 0);
}

const OPEN: EndState = { kind: "open" };
const DONE: EndState = { kind: "done" };

/**
 * Makes one write for each shard, however often the lease took from it, and more where one sum
 * would not be exact.
 */
export function buildEnds(
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
    const { creation, divisor, splitAtMs, windowEnds } = part.incarnation;
    const windows = windowEnds === undefined ? "" : JSON.stringify(windowEnds);
    const id = `${part.key.text}/${creation}/${divisor}/${splitAtMs}/${windows}`;
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
  part: EndTarget,
  costs: Costs,
  {
    unlimited,
    requests,
    undone,
    claim,
    mayOwe = false,
  }: {
    readonly unlimited: Costs | undefined;
    readonly requests: number;
    readonly undone?: 1 | undefined;
    readonly claim?: WantedClaim | undefined;
    readonly mayOwe?: boolean;
  },
): EndWrite {
  const isCounting = unlimited !== undefined && Object.keys(unlimited).length > 0;
  return {
    part,
    costs,
    unlimited: isCounting ? unlimited : undefined,
    requests,
    undone,
    claim,
    mayOwe,
    operation: { history: undefined },
    state: OPEN,
  };
}

/** The error of a charge, which says whether any of it may have been written. */
function buildChargeError(error: Error, ends: readonly EndWrite[]): RateLimiterUnavailable {
  const stackName = error instanceof RateLimiterUnavailable ? error.stackName : undefined;
  return new RateLimiterUnavailable(
    ends.every(isUnwritten)
      ? `Nothing was charged. ${error.message}`
      : "The charge may have been written, wholly or in part: charging again could charge it twice.",
    { ...(stackName !== undefined && { stackName }), cause: error },
  );
}

function isUnwritten({ state, operation: { history } }: EndWrite): boolean {
  if (state.kind === "divided") return state.into.every(isUnwritten);
  return state.kind === "open" && (history === undefined || history.fate === "not applied");
}

/**
 * A lease that takes again and again may take more than the range of safe integers, and no batch
 * carries a cost beyond that range.
 */
function isExact(costs: Costs): boolean {
  return Object.values(costs).every((cost) => Number.isSafeInteger(cost));
}
