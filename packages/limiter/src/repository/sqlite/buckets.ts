import { apply, listWindowEnds, type Bucket } from "../../core/bucket/bucket.ts";
import type { WindowEnds } from "../../core/bucket/windows.ts";
import {
  afterRefusal,
  costsMilli,
  fits,
  addDivided,
  divideWanted,
  negateDivided,
  computeStatuses,
  withPolicyLimits,
  type LimitStatus,
  buildClaims,
  takesAnything,
  listPolicies,
  type DividedAmounts,
  type Levels,
  type OwnedClaim,
} from "../../core/bucket/decision.ts";
import { computeLeaves } from "../../core/bucket/leave.ts";
import { levelAt, resolvePolicy, withDefaults, type Policy } from "../../core/bucket/policy.ts";
import { settleParts, computeTakenStatuses, type TakenPart } from "../../core/bucket/settlement.ts";
import type {
  ConsumeOutcome,
  ConsumeRequest,
  MaybePromise,
  Receipt,
  ResourceAmounts,
} from "../port.ts";
import { listConfigKeys } from "../policy-cache.ts";
import type { BucketStore, Keyed, KeyPage, PolicySource, StoredBucket } from "../store.ts";
import type { Connection } from "./database/connection.ts";
import type { SqliteLimits } from "./limits.ts";
import type { SqliteNamespace } from "./sqlite-namespace.ts";
import { addUsage, type Counted } from "./transactions/usage-hours.ts";
import {
  parseLoadedBucket,
  type LoadedBucket,
  type BucketLookup,
  type WorkingSet,
} from "./transactions/working-set.ts";

/** One bucket of a call. */
interface FoundClaim extends OwnedClaim {
  readonly found: BucketLookup;
  /** Whether the bucket belongs to the parent of the entity that makes the call. */
  readonly isCascaded: boolean;
}

/** The tokens taken from one bucket. */
interface ReceiptPart extends TakenPart {
  readonly bucketId: number;
  /** 1 if it counts as a request: the acquire does, later takes by `lease.consume` do not. */
  readonly requests: 0 | 1;
  readonly isCascaded: boolean;
}

interface SqliteReceipt extends Receipt {
  readonly parts: ReceiptPart[];
  /**
   * The settlement or give-back, once it has begun. A second one returns the same promise, so that
   * a retry never writes twice.
   */
  ending: Promise<void> | undefined;
}

/** The buckets of a namespace. The core decides on a working set, inside a transaction. */
export class SqliteBuckets implements BucketStore {
  readonly #namespace: SqliteNamespace;
  readonly #limits: SqliteLimits;
  readonly #policies: PolicySource;
  readonly #recordUsage: boolean;

  constructor(options: {
    readonly namespace: SqliteNamespace;
    readonly limits: SqliteLimits;
    readonly policies: PolicySource;
    readonly recordUsage: boolean;
  }) {
    this.#namespace = options.namespace;
    this.#limits = options.limits;
    this.#policies = options.policies;
    this.#recordUsage = options.recordUsage;
  }

  async consume(request: ConsumeRequest, extending?: Receipt): Promise<ConsumeOutcome> {
    const requests = extending === undefined ? 1 : 0;
    const decision = await this.#namespace.transactions.share((set) =>
      this.#decide(set, request, requests),
    );
    if (!decision.granted) return decision;
    const receipt = (extending ?? { parts: [], ending: undefined }) as SqliteReceipt;
    // New buckets have ids by now: their rows were written at the end of the transaction.
    for (const { loaded, claim, windowEnds } of decision.taken) {
      const { entityId, resource, policy, amounts, unlimited, isCascaded } = claim;
      receipt.parts.push({
        entityId,
        resource,
        policy,
        amounts,
        unlimited,
        windowEnds,
        bucketId: loaded.id!,
        requests,
        isCascaded,
      });
    }
    return { granted: true, receipt, policies: decision.policies };
  }

  charge(request: ConsumeRequest): Promise<void> {
    return this.#namespace.transactions.share((set) => {
      const nowMs = this.#namespace.nowMs();
      for (const claim of this.#buildClaims(set, request, nowMs))
        if (takesAnything(claim)) this.#take(set, claim, 0, nowMs);
    });
  }

  settle(receipt: Receipt, deltas: readonly ResourceAmounts[]): Promise<void> {
    return this.#end(receipt as SqliteReceipt, (set, parts, nowMs) => {
      for (const { part, ...share } of settleParts(parts, deltas, this.#levels))
        this.#writeEnd(set, part, { ...share, requests: 0, nowMs });
    });
  }

  giveBack(receipt: Receipt): Promise<void> {
    return this.#end(receipt as SqliteReceipt, (set, parts, nowMs) => {
      for (const part of parts)
        this.#writeEnd(set, part, { ...negateDivided(part), requests: -part.requests, nowMs });
    });
  }

  read(request: ConsumeRequest): MaybePromise<readonly LimitStatus[]> {
    return this.#namespace.transactions.readTogether((set) => {
      const nowMs = this.#namespace.nowMs();
      return computeStatuses(this.#buildClaims(set, request, nowMs), nowMs);
    });
  }

  remembered(receipt: Receipt): MaybePromise<readonly LimitStatus[]> {
    const { transactions, namespaceId } = this.#namespace;
    const { parts } = receipt as SqliteReceipt;
    return transactions.readTogether((set) =>
      computeTakenStatuses(
        parts,
        ({ entityId, resource }) => set.find(namespaceId, entityId, resource).loaded?.bucket,
        this.#namespace.nowMs(),
      ),
    );
  }

  ofEntity(entityId: string, resource: string | undefined): MaybePromise<readonly StoredBucket[]> {
    const { connection, transactions, namespaceId } = this.#namespace;
    return transactions.read(() =>
      (resource === undefined
        ? connection.rows(OF_ENTITY, namespaceId, entityId)
        : connection.rows(OF_ENTITY_AND_RESOURCE, namespaceId, entityId, resource)
      ).map((row) => toStoredBucket(parseLoadedBucket(row))),
    );
  }

  ofResource(resource: string): MaybePromise<readonly StoredBucket[]> {
    const { connection, transactions, namespaceId } = this.#namespace;
    return transactions.read(() =>
      connection
        .rows(OF_RESOURCE, namespaceId, resource)
        .map((row) => toStoredBucket(parseLoadedBucket(row))),
    );
  }

  ofResourcePage(
    resource: string,
    { limit, after = "" }: KeyPage,
  ): MaybePromise<Keyed<StoredBucket>> {
    const { connection, transactions, namespaceId } = this.#namespace;
    return transactions.read(() => {
      const found = connection
        .rows(RESOURCE_PAGE, namespaceId, resource, after, limit + 1)
        .map((row) => toStoredBucket(parseLoadedBucket(row)));
      return {
        items: found.slice(0, limit),
        next: found.length > limit ? found[limit - 1]!.entityId : undefined,
      };
    });
  }

  #decide(set: WorkingSet, request: ConsumeRequest, requests: 0 | 1): Decision {
    const nowMs = this.#namespace.nowMs();
    const claims = this.#buildClaims(set, request, nowMs);
    if (!fits(claims, nowMs)) return this.#refuse(set, claims, nowMs);
    const taken = claims.map((claim) => {
      const loaded = this.#take(set, claim, requests, nowMs);
      const windowEnds = claim.policy.hasWindows ? listWindowEnds(loaded.bucket) : undefined;
      return { loaded, claim, windowEnds };
    });
    return { granted: true, taken, policies: listPolicies(request, claims) };
  }

  /** Takes what a claim wants, whether it fits or not. */
  #take(set: WorkingSet, claim: FoundClaim, requests: 0 | 1, nowMs: number): LoadedBucket {
    const { namespaceId } = this.#namespace;
    const { entityId, resource, amounts, unlimited, bucket, found, isCascaded } = claim;
    const loaded = found.loaded ?? set.create(found, { namespaceId, entityId, resource }, bucket);
    this.#write(set, loaded, bucket, { amounts, unlimited, requests, isCascaded, nowMs });
    return loaded;
  }

  #refuse(set: WorkingSet, claims: readonly FoundClaim[], nowMs: number): Decision {
    for (const { found, policy } of claims) {
      const bucket = afterRefusal(found.loaded?.bucket, policy, nowMs);
      if (found.loaded !== undefined && bucket !== undefined) set.put(found.loaded, bucket);
    }
    return { granted: false, statuses: computeStatuses(claims, nowMs) };
  }

  #buildClaims(set: WorkingSet, request: ConsumeRequest, nowMs: number): readonly FoundClaim[] {
    const { namespaceId, config } = this.#namespace;
    return buildClaims(request, (wanted) => {
      const { entityId, resource, override, defaults } = wanted;
      const found = set.find(namespaceId, entityId, resource);
      config.noteRead(found.configVersion);
      const policy = override ?? withDefaults(this.#policy(entityId, resource), defaults);
      if (policy === undefined) return undefined;
      const { amounts, unlimited } = divideWanted(wanted, policy, this.#levels);
      const bucket = withPolicyLimits(found.loaded?.bucket, policy, nowMs);
      const isCascaded = wanted.isParent;
      const { parentId } = found;
      const leaves = computeLeaves(policy, wanted.leave);
      // No spread: a property behind it is slow to add. This one and the receipt's took 8 of 50 µs.
      return {
        entityId,
        resource,
        policy,
        amounts,
        unlimited,
        bucket,
        found,
        isCascaded,
        parentId,
        leaves,
      };
    });
  }

  /**
   * The policy that applies now. Inside a transaction the cache returns it at once, unless a read
   * that waits for a lock is still pending.
   */
  #policy(entityId: string, resource: string): Policy | undefined {
    const policy = this.#policies.resolve(entityId, resource);
    if (!(policy instanceof Promise)) return policy;
    // The caller that started that read handles its failure; this decision reads by itself.
    policy.catch(() => {});
    return resolvePolicy(this.#levelsNow(entityId, resource));
  }

  readonly #levels = (entityId: string, resource: string): Levels => {
    const levels = this.#policies.levels(entityId, resource);
    if (!(levels instanceof Promise)) return levels;
    levels.catch(() => {});
    return this.#levelsNow(entityId, resource);
  };

  #levelsNow(entityId: string, resource: string): Levels {
    const keys = listConfigKeys(entityId, resource);
    const stored = this.#limits.readNow(keys);
    return keys.map((key, index) => levelAt(key, stored[index]!));
  }

  #write(set: WorkingSet, loaded: LoadedBucket, bucket: Bucket, change: Change & Counted): void {
    const { amounts, nowMs, windowEnds } = change;
    set.put(loaded, apply(bucket, costsMilli(bucket, amounts), nowMs, windowEnds));
    if (this.#recordUsage) set.record(loaded, addDivided(change), change, nowMs);
  }

  /** Writes the end of a lease to a bucket, unless the bucket was deleted meanwhile. */
  #writeEnd(
    set: WorkingSet,
    { bucketId, isCascaded, windowEnds }: ReceiptPart,
    change: Change & Pick<Counted, "requests">,
  ): void {
    const loaded = set.findById(bucketId);
    if (loaded === undefined) return;
    this.#write(set, loaded, loaded.bucket, { ...change, isCascaded, windowEnds });
  }

  #end(
    receipt: SqliteReceipt,
    write: (set: WorkingSet, parts: readonly ReceiptPart[], nowMs: number) => void,
  ): Promise<void> {
    receipt.ending ??= this.#namespace.transactions
      .share((set) => write(set, receipt.parts, this.#namespace.nowMs()))
      .catch((error: unknown) => {
        // Nothing was written, so the end can be tried again.
        receipt.ending = undefined;
        throw error;
      });
    return receipt.ending;
  }
}

/** What a bucket is charged, and what it only counts, in whole tokens. */
interface Change extends DividedAmounts, Pick<TakenPart, "windowEnds"> {
  readonly requests: number;
  readonly nowMs: number;
}

type Decision =
  | {
      readonly granted: true;
      readonly taken: readonly {
        readonly loaded: LoadedBucket;
        readonly claim: FoundClaim;
        readonly windowEnds: WindowEnds | undefined;
      }[];
      readonly policies: readonly Policy[];
    }
  | { readonly granted: false; readonly statuses: readonly LimitStatus[] };

/** Deletes the buckets of an entity, but keeps the usage they have counted. */
export function deleteBuckets(
  connection: Connection,
  namespaceId: string,
  entityId: string,
  nowMs: number,
): number {
  for (const row of connection.rows(OF_ENTITY, namespaceId, entityId)) {
    const loaded = parseLoadedBucket(row);
    if (loaded.hour !== undefined) addUsage(connection, loaded, loaded.hour, nowMs);
  }
  return connection.run(DELETE_OF_ENTITY, namespaceId, entityId);
}

const OF_ENTITY =
  "SELECT * FROM buckets WHERE namespace_id = ? AND entity_id = ? ORDER BY resource";
const OF_ENTITY_AND_RESOURCE =
  "SELECT * FROM buckets WHERE namespace_id = ? AND entity_id = ? AND resource = ?";
const OF_RESOURCE =
  "SELECT * FROM buckets WHERE namespace_id = ? AND resource = ? ORDER BY entity_id";
const RESOURCE_PAGE =
  "SELECT * FROM buckets WHERE namespace_id = ? AND resource = ? AND entity_id > ? ORDER BY entity_id LIMIT ?";
const DELETE_OF_ENTITY = "DELETE FROM buckets WHERE namespace_id = ? AND entity_id = ?";

function toStoredBucket({ entityId, resource, bucket }: LoadedBucket): StoredBucket {
  return { entityId, resource, shard: 0, shardCount: 1, bucket };
}
