/*
 * One write to one bucket, for a batch of operations (see group-commit.ts), however often it takes.
 *
 *   image ──▶ decide ──▶ nobody fits: refused
 *     ▲          │
 *     │          └──▶ send ──▶ applied ──▶ those in it are done, those that did not fit beside them are refused
 *     │                 ├───▶ condition failed: the reply carries the item ──┐
 *     │                 ├───▶ throttled: pause, the same again               │
 *     │                 └───▶ no answer: the same again, with the same id    │
 *     └──────────────────────────────────────────────────────────────────────┘  a bounded number of times, then acquires are contended
 *
 * Writes of one process to one bucket go one after another: they would only fail each other's
 * conditions. Members whose write got no answer share its fate, which each of them remembers
 * (unresolved.ts).
 *
 * A batch that was overtaken by a refill is judged as of that refill, not as of now: it takes what
 * the other has left, which needs no refill and no lock, and what did not fit then is refused as of
 * then. Otherwise everybody who lost a race for the last token would earn the next one on the way
 * back and lose the race for that too, until they count as contended: 644 calls in 5 s, of 8
 * processes that asked for more than a bucket of 200 a second gives. One that was overtaken and
 * still needs the next token waits for the next tick, when one refill serves all.
 */
import { RateLimiterUnavailable } from "../../core/errors.ts";
import { sameLimits } from "../../core/limit.ts";
import type { Policy } from "../../core/policy.ts";
import type { Member } from "../group-commit.ts";
import type { MaybePromise } from "../port.ts";
import type { AttributeMap } from "./attribute-values.ts";
import { chargesOf } from "./bucket-batch.ts";
import type { BucketCounts } from "./bucket-counts.ts";
import { changedImage, imageOf, type BucketImage } from "./bucket-item.ts";
import type { BucketKey } from "./bucket-key.ts";
import {
  planWrite,
  type BucketIntent,
  type BucketOutcome,
  type BucketWork,
  type Plan,
  type PlannedWrite,
  type ShardLife,
} from "./bucket-plan.ts";
import { TableUnavailable } from "./client-errors.ts";
import type { Conditional, Connection } from "./connection.ts";
import type { BucketImages, Remembered } from "./images.ts";
import type { OperationIds } from "./operation-ids.ts";
import { pause } from "./retry.ts";
import type { Splitter } from "./splitter.ts";
import { nextTickMs } from "./tick.ts";
import {
  newHistory,
  outcomeOf,
  overtaken,
  stillPending,
  withUnresolved,
  type Unresolved,
} from "./unresolved.ts";

/**
 * Decisions that one batch may make anew after failed conditions. For an acquire, more than that is
 * contention, which is unavailability.
 */
const MAX_DECISIONS = 12;

type BucketMember = Member<BucketWork, BucketOutcome>;

/** Writes buckets. */
export class BucketWriter {
  readonly #connection: Connection;
  readonly #images: BucketImages;
  readonly #ids: OperationIds;
  readonly #ttlMultiplier: number;
  readonly #largestTickMs: number;
  readonly #splitter: Splitter;
  readonly #counts: BucketCounts;

  constructor(options: {
    readonly connection: Connection;
    readonly images: BucketImages;
    readonly ids: OperationIds;
    readonly ttlMultiplier: number;
    readonly largestTickMs: number;
    readonly splitter: Splitter;
    readonly counts: BucketCounts;
  }) {
    this.#connection = options.connection;
    this.#images = options.images;
    this.#ids = options.ids;
    this.#ttlMultiplier = options.ttlMultiplier;
    this.#largestTickMs = options.largestTickMs;
    this.#splitter = options.splitter;
    this.#counts = options.counts;
  }

  /**
   * Carries an intent out, together with those that arrive while the write before it is under way.
   */
  write(key: BucketKey, intent: BucketIntent): Promise<BucketOutcome> {
    const entry = this.#images.entry(key.text);
    const work = { intent, history: intent.history ?? newHistory() };
    return entry.queue.submit(work, (batch) => this.#writeBatch(key, entry, batch));
  }

  async #writeBatch(
    key: BucketKey,
    entry: Remembered,
    batch: readonly BucketMember[],
  ): Promise<void> {
    const sentBefore = batch.flatMap(({ work }) =>
      work.history.unanswered.filter(({ outcome }) => outcome === "pending"),
    );
    if (sentBefore.length > 0)
      entry.unresolved = [...new Set([...entry.unresolved, ...sentBefore])];
    const begunMs = this.#nowMs();
    let members: readonly BucketMember[] = [];
    for (let decision = 1; decision <= MAX_DECISIONS; decision += 1) {
      const { image } = entry;
      const found = policiesOf(batch, image);
      const policies = found instanceof Promise ? await found : found;
      entry.unresolved = stillPending(entry.unresolved, entry.image);
      for (const member of batch) if (member.isOpen) concludeIfKnown(key, member, entry);
      members = withOnePolicy(batch, policies);
      if (members.length === 0) return;
      const plan = this.#plan({ key, entry, members, policies, image, begunMs });
      if (decision > 1 && plan.tickInMs !== undefined) {
        await this.#connection.clock.sleep(plan.tickInMs);
        continue;
      }
      const written = members.filter((_, index) => plan.verdicts[index] === "written");
      if (plan.write === undefined || (await this.#send(key, entry, plan.write, written)))
        return this.#conclude(key, entry, members, plan);
    }
    // What ends a lease stays open, and goes with the next batch: work that was done is never
    // forgotten because others were faster.
    for (const member of members)
      if (member.isOpen && (isTake(member) || member.work.intent.kind === "adopt"))
        member.reject(
          unavailable(key, `contended: ${MAX_DECISIONS} writes were overtaken by others`),
        );
  }

  /**
   * The image is the one that the policies belong to: a newer one may show limits that they must
   * not be written over.
   */
  #plan({
    key,
    entry,
    members,
    policies,
    image,
    begunMs,
  }: PlannedBatch): Plan & { readonly asOfMs: number } {
    const nowMs = this.#nowMs();
    const refilledAtMs = image?.bucket.refilledAtMs ?? nowMs;
    const asOfMs = refilledAtMs >= begunMs && refilledAtMs <= nowMs ? refilledAtMs : nowMs;
    const decisive = members.find(isTake) ?? members[0]!;
    const plan = planWrite({
      key,
      intents: members.map(({ work }) => writtenPart(work)),
      policy: policies.get(decisive)!,
      image,
      nowMs,
      asOfMs,
      tickMs: entry.tickMs,
      ids: this.#ids,
      pending: entry.unresolved[0]?.mark,
      writeUnits: entry.failedUnits + 1,
      ttlMultiplier: this.#ttlMultiplier,
    });
    return { ...plan, asOfMs };
  }

  /**
   * Tells the members of a plan that was carried out. One without a verdict stays open, and goes
   * with the next batch.
   */
  #conclude(
    key: BucketKey,
    entry: Remembered,
    members: readonly BucketMember[],
    plan: Plan & { readonly asOfMs: number },
  ): void {
    if (plan.write !== undefined) {
      this.#counts.batches += 1;
      this.#counts.batchedOperations += plan.verdicts.filter(
        (verdict) => verdict === "written",
      ).length;
    }
    plan.verdicts.forEach((verdict, index) => {
      const member = members[index]!;
      if (verdict === "written") member.resolve(appliedTo(plan.write?.life, entry));
      else if (verdict !== "refused") member.resolve({ kind: verdict });
      else if (outcomeOf(member.work.history) === "pending") member.reject(outcomeUnknown(key));
      else member.resolve({ kind: "refused", atMs: plan.asOfMs });
    });
  }

  /**
   * Whether it was applied. Otherwise its condition failed, or nobody knows, which the members'
   * histories tell.
   */
  async #send(
    key: BucketKey,
    entry: Remembered,
    write: PlannedWrite,
    members: readonly BucketMember[],
  ): Promise<boolean> {
    let ambiguous = false;
    for (let attempt = 1; ; attempt += 1) {
      const asking = this.#images.asking(this.#connection.clock.now());
      try {
        const reply = await this.#connection.conditional<WriteOutput>(write.operation, write.input);
        const image = imageAfter(reply, write, entry);
        this.#images.remember(key.text, image, asking);
        this.#count(entry, reply.applied);
        if (image !== undefined) this.#splitter.noteWrite(key, image, asking.ms);
        if (ambiguous && !reply.applied) remain(entry, write, members);
        return reply.applied;
      } catch (error) {
        if (!(error instanceof TableUnavailable)) throw error;
        ambiguous ||= error.ambiguous;
        if (error.throttled && !error.tableWide) this.#splitter.noteThrottled(key);
        const mayRepeat = !ambiguous || write.mark !== undefined;
        if (attempt >= this.#connection.maxAttempts || !mayRepeat) {
          if (ambiguous) remain(entry, write, members);
          if (mayRepeat) throw withAmbiguity(error, ambiguous);
          return false;
        }
        this.#connection.countRetry();
        if (!error.timedOut) await pause(attempt, this.#connection.retryOptions());
      }
    }
  }

  #count(entry: Remembered, applied: boolean): void {
    entry.failedUnits = applied ? 0 : entry.failedUnits + 1;
    entry.tickMs = nextTickMs(entry.tickMs, { applied, largestMs: this.#largestTickMs });
    if (!applied) {
      this.#counts.failedConditions += 1;
      return;
    }
    this.#counts.writes += 1;
    overtaken(entry.unresolved);
    entry.unresolved = [];
  }

  #nowMs(): number {
    return Math.floor(this.#connection.clock.now());
  }
}

interface WriteOutput {
  readonly Attributes?: AttributeMap;
}

/** The bucket as the reply to a write shows it. */
function imageAfter(
  reply: Conditional<WriteOutput>,
  write: PlannedWrite,
  { image: known }: Remembered,
): BucketImage | undefined {
  const item = reply.applied ? (reply.output.Attributes ?? write.item) : reply.item;
  if (item === undefined) return undefined;
  return reply.applied && write.changed !== undefined
    ? changedImage(write.changed, item)
    : imageOf(item, known);
}

type Policies = ReadonlyMap<BucketMember, Policy>;

interface PlannedBatch {
  readonly key: BucketKey;
  readonly entry: Remembered;
  readonly members: readonly BucketMember[];
  readonly policies: Policies;
  readonly image: BucketImage | undefined;
  /** When the batch began: all its members were there by then. */
  readonly begunMs: number;
}

/**
 * The policy that each open member would be decided with, given the image. One that cannot be read
 * fails its member, and no other.
 */
function policiesOf(
  batch: readonly BucketMember[],
  image: BucketImage | undefined,
): MaybePromise<Policies> {
  const policies = new Map<BucketMember, Policy>();
  const onTheWay: Promise<unknown>[] = [];
  for (const member of batch) {
    if (!member.isOpen) continue;
    const policy = member.work.intent.policy(image);
    if (!(policy instanceof Promise)) policies.set(member, policy);
    else
      onTheWay.push(
        policy.then(
          (read) => policies.set(member, read),
          (error: unknown) => member.reject(error),
        ),
      );
  }
  return onTheWay.length === 0 ? policies : Promise.all(onTheWay).then(() => policies);
}

/**
 * The open members that one write can carry: up to the first acquire that is to be decided with
 * other limits. A call that brought limits along goes alone, and so does the change of limits after
 * a refusal.
 */
function withOnePolicy(
  batch: readonly BucketMember[],
  policies: Policies,
): readonly BucketMember[] {
  const open = batch.filter(({ isOpen }) => isOpen);
  const goesAlone = (member: BucketMember): boolean =>
    member.work.intent.kind === "adopt" ||
    (isTake(member) && policies.get(member)!.source === "override");
  if (open.length < 2 || goesAlone(open[0]!)) return open.slice(0, 1);
  const first = open.find(isTake);
  const end = open.findIndex(
    (member) =>
      goesAlone(member) ||
      (isTake(member) && !isSamePolicy(policies.get(member)!, policies.get(first!)!)),
  );
  return end < 0 ? open : open.slice(0, end);
}

function isTake({ work }: BucketMember): boolean {
  return work.intent.kind === "take";
}

function isSamePolicy(left: Policy, right: Policy): boolean {
  return left === right || (left.source === right.source && sameLimits(left.limits, right.limits));
}

/**
 * What is left to write of an operation whose give-back may have been applied. One that was sent
 * before goes to the same shard again, whatever that owes then: only there can be told what became
 * of it.
 */
function writtenPart({ intent, history }: BucketWork): BucketIntent {
  if (history.onlyCharges) return { ...intent, costs: chargesOf(intent.costs), mayOwe: true };
  return history.unanswered.length > 0 ? { ...intent, mayOwe: true } : intent;
}

/**
 * Remembers a write whose outcome is open; one without an id leaves no trace, so it stays unknown.
 */
function remain(
  entry: Remembered,
  { mark, life }: PlannedWrite,
  members: readonly BucketMember[],
): void {
  const write: Unresolved = mark === undefined ? UNKNOWABLE : { mark, life, outcome: "pending" };
  for (const { work } of members) work.history.unanswered = [...work.history.unanswered, write];
  if (mark !== undefined) entry.unresolved = withUnresolved(entry.unresolved, write);
}

const UNKNOWABLE: Unresolved = {
  mark: { id: "", writer: "", slot: 0, seenId: undefined },
  life: { creation: undefined, divisor: 1 },
  outcome: "unknown",
};

/**
 * Tells a member that was sent before what is known of it. When nobody can tell any more, the side
 * that charges more counts: a take is not granted, a give-back is not repeated, and of a charge
 * only what it charges is.
 */
function concludeIfKnown(key: BucketKey, member: BucketMember, entry: Remembered): void {
  const { intent, history } = member.work;
  const outcome = outcomeOf(history);
  if (outcome === "applied")
    member.resolve(
      appliedTo(history.unanswered.find((write) => write.outcome === "applied")!.life, entry),
    );
  if (outcome !== "unknown") return;
  if (intent.kind === "take") member.reject(outcomeUnknown(key));
  else if (intent.kind !== "charge" || Object.keys(chargesOf(intent.costs)).length === 0)
    member.resolve(appliedTo(undefined, entry));
  else {
    history.onlyCharges = true;
    history.unanswered = [];
  }
}

function appliedTo(life: ShardLife | undefined, { image }: Remembered): BucketOutcome {
  const { creation, divisor } = life ?? { creation: image?.creation, divisor: image?.divisor ?? 1 };
  return {
    kind: "applied",
    life: { creation, divisor, expiredBySeconds: image?.expiresAtSeconds },
  };
}

function outcomeUnknown(key: BucketKey): RateLimiterUnavailable {
  return unavailable(key, "its outcome is unknown, so the call is not granted");
}

/** The last attempt may have been refused outright while an earlier one is still unknown. */
function withAmbiguity(error: TableUnavailable, ambiguous: boolean): TableUnavailable {
  if (error.ambiguous === ambiguous) return error;
  const { message, throttled, tableWide, timedOut } = error;
  return new TableUnavailable(message, { throttled, tableWide, timedOut, ambiguous, cause: error });
}

function unavailable({ entityId, resource }: BucketKey, reason: string): RateLimiterUnavailable {
  return new RateLimiterUnavailable(`The bucket could not be written: ${reason}. Try again.`, {
    entityId,
    resource,
  });
}
