import {
  readCharged,
  counting,
  listEnds,
  holdsAll,
  newBucket,
  listTokens,
  under,
  type Ends,
  type LimitBalance,
  type OracleBucket,
  type Tokens,
} from "./oracle-bucket.ts";
import { OracleConfig, type ResolvedTerms } from "./oracle-config.ts";
import { OracleLease, type Part } from "./oracle-lease.ts";
import { OracleUsage } from "./oracle-usage.ts";
import { isReturnLost } from "./window-balance.ts";
import { Strictness } from "./strictness.ts";
import { toSpec, toTerms, type LimitSpec, type Terms } from "./terms.ts";

/** What a call wants of one resource. */
export interface Want {
  readonly resource: string;
  readonly tokens: Tokens;
}

/** A call, as the oracle needs to know it. */
export interface Call {
  readonly entityId: string;
  readonly wants: readonly Want[];
  readonly override: readonly LimitSpec[] | undefined;
}

/** One bucket of a call, as the call's limits show it. */
export interface Charge {
  readonly key: string;
  readonly entityId: string;
  readonly resource: string;
  /** The level of each limit, by its name. */
  readonly sources: ReadonlyMap<string, string>;
  readonly wanted: readonly Terms[];
  /** What it is charged. */
  readonly tokens: Tokens;
  /** What it only counts, because no limit of that name holds. */
  readonly counted: Tokens;
  /** Undefined when the bucket does not exist yet. */
  readonly stored: OracleBucket | undefined;
  readonly view: OracleBucket;
}

/** The required outcome of a call. */
export type Verdict = Decision | { readonly kind: "invalid"; readonly why: string };

/** A call that can be decided. */
export interface Decision {
  readonly kind: "granted" | "refused";
  readonly claims: readonly Charge[];
}

/** A promise was broken. */
export class BrokenPromise extends Error {}

/**
 * Knows what must be true, by its own arithmetic, from everything that ever happened. It imports
 * nothing of the code that it judges (a test looks after that).
 */
export class Oracle {
  readonly config = new OracleConfig();
  readonly usage = new OracleUsage();
  /** The part of the usage that came to a parent from the calls of its children. */
  readonly cascaded = new OracleUsage();
  readonly #buckets = new Map<string, OracleBucket>();
  readonly #strictness = new Map<string, Strictness>();
  #lives = 0;

  /** Every bucket that exists, by entity and resource. */
  bucket(entityId: string, resource: string): OracleBucket | undefined {
    return this.#buckets.get(toKey(entityId, resource));
  }

  /** Returns the required outcome of a call at a time. Changes nothing. */
  decide(call: Call, nowMs: number): Verdict {
    const claims: Charge[] = [];
    const parentId = this.config.cascadesTo(call.entityId);
    for (const { resource, tokens } of call.wants) {
      const own = this.#charge(call.entityId, resource, tokens, call.override, nowMs);
      if (own === undefined)
        return { kind: "invalid", why: `no limits for ${call.entityId} on ${resource}` };
      if (call.override !== undefined && changesKind(own.stored, call.override.map(toTerms)))
        return { kind: "invalid", why: "a limit is of another kind" };
      for (const name in tokens)
        if (!Object.hasOwn(own.tokens, name) && !Object.hasOwn(own.counted, name))
          return { kind: "invalid", why: `no limit ${name}` };
      claims.push(own);
      const parents =
        parentId === undefined
          ? undefined
          : this.#charge(parentId, resource, tokens, undefined, nowMs);
      if (parents !== undefined) claims.push(parents);
    }
    return { kind: fitsAt(claims, nowMs) ? "granted" : "refused", claims };
  }

  /**
   * Carries out a decision: a grant takes everywhere, a refusal takes nowhere but lets the buckets
   * know the limits. `reached` leaves out buckets, when an answer was lost and it is unknown how
   * far the call came. `left` returns what a refusal left behind, where several outcomes are
   * allowed.
   */
  carryOut(
    verdict: Decision,
    nowMs: number,
    options: {
      extending?: OracleLease;
      reached?: (claim: Charge) => boolean;
      left?: (claim: Charge) => OracleBucket | undefined;
    } = {},
  ): OracleLease {
    const lease = options.extending ?? new OracleLease(verdict.claims[0]!.entityId);
    const requests = options.extending === undefined ? 1 : 0;
    for (const claim of verdict.claims) {
      if (options.reached?.(claim) === false) continue;
      const { key, tokens } = claim;
      const bucket = (options.left ?? ((asked) => bucketAfter(verdict.kind, asked, nowMs)))(claim);
      if (bucket === undefined) continue;
      if (verdict.kind === "refused") {
        this.#put(key, bucket, {}, false);
        continue;
      }
      this.#put(key, bucket, tokens, true);
      this.#record(lease, claim, nowMs, { ...tokens, ...claim.counted }, requests);
      const names = claim.wanted.map(({ name }) => name);
      lease.add({
        key,
        entityId: claim.entityId,
        resource: claim.resource,
        life: bucket.life,
        names,
        tokens,
        counted: claim.counted,
        ends: listEnds(bucket),
        requests,
      });
    }
    return lease;
  }

  /**
   * Charges what has already happened, whether it fits or not: to every bucket that is charged or
   * counts anything.
   */
  charge({ claims }: Decision, nowMs: number): void {
    for (const claim of claims) {
      const used = { ...claim.tokens, ...claim.counted };
      if (Object.values(used).every((tokens) => tokens === 0)) continue;
      this.#put(claim.key, bucketAfter("granted", claim, nowMs)!, claim.tokens, false);
      this.#record(claims[0]!, claim, nowMs, used, 0);
    }
  }

  /** Writes the differences of a lease. */
  settle(lease: OracleLease, nowMs: number): void {
    for (const { part, tokens, counted } of this.getSettlement(lease))
      this.#writeLater(lease, part, { tokens, counted }, 0, nowMs);
  }

  /** What the commit of a lease writes. */
  getSettlement(lease: OracleLease): ReturnType<OracleLease["settlement"]> {
    return lease.settlement((entityId, resource, name) =>
      this.config.knows(entityId, resource, name),
    );
  }

  /** Puts everything back where it came from. */
  giveBack(lease: OracleLease, nowMs: number): void {
    for (const part of lease.parts) {
      const back = { tokens: negative(part.tokens), counted: negative(part.counted) };
      this.#writeLater(lease, part, back, -part.requests, nowMs);
    }
  }

  /** Ends the life of every bucket of an entity; returns how many there were. */
  deleteBuckets(entityId: string): number {
    const keys = [...this.#buckets.keys()].filter((key) => key.startsWith(`${entityId} `));
    for (const key of keys) this.#buckets.delete(key);
    return keys.length;
  }

  #charge(
    entityId: string,
    resource: string,
    tokens: Tokens,
    override: readonly LimitSpec[] | undefined,
    nowMs: number,
  ): Charge | undefined {
    const held = this.#buckets.get(toKey(entityId, resource));
    const policy =
      override === undefined
        ? this.config.resolve(entityId, resource)
        : overriding(override.map((spec) => keepWindows(held, toTerms(spec))));
    if (policy === undefined) return undefined;
    const isLimited = (name: string): boolean => policy.sources.has(name);
    const isCounted = (name: string): boolean =>
      !isLimited(name) && override === undefined && this.config.knows(entityId, resource, name);
    const key = toKey(entityId, resource);
    const stored = this.#buckets.get(key);
    const view =
      stored === undefined
        ? newBucket(policy.wanted, (this.#lives += 1), nowMs)
        : under(stored, policy.wanted, nowMs, false);
    const divided = { tokens: among(tokens, isLimited), counted: among(tokens, isCounted) };
    return { key, entityId, resource, stored, view, ...divided, ...policy };
  }

  /**
   * A lease pays to the life of the bucket that it took from; what it owes to a deleted one is
   * dropped.
   */
  #writeLater(
    lease: OracleLease,
    part: Part,
    { tokens, counted }: Pick<Part, "tokens" | "counted">,
    requests: number,
    nowMs: number,
  ): void {
    const bucket = this.#buckets.get(part.key);
    if (bucket?.life !== part.life) return;
    const after = counting(readCharged(bucket, tokens, nowMs, part.ends), counted);
    this.#put(part.key, after, withoutLost(bucket, part.ends, tokens, nowMs), false);
    this.#record(lease, part, nowMs, { ...tokens, ...counted }, requests);
  }

  #record(
    { entityId: ownId }: Pick<OracleLease, "entityId">,
    { key, entityId }: Pick<Part, "key" | "entityId">,
    nowMs: number,
    tokens: Tokens,
    requests: number,
  ): void {
    this.usage.record(key, nowMs, tokens, requests);
    if (entityId !== ownId) this.cascaded.record(key, nowMs, tokens, requests);
  }

  #put(key: string, bucket: OracleBucket, tokens: Tokens, isGrant: boolean): void {
    this.#buckets.set(key, bucket);
    for (const { terms, opened = 0 } of bucket.balances) {
      const of = `${bucket.life} ${terms.name}`;
      const strictness = this.#strictness.get(of) ?? new Strictness();
      this.#strictness.set(of, strictness);
      const change = { tokens: listTokens(tokens, terms.name), terms, opened };
      const wrong = strictness.add(bucket.stampMs, change, isGrant);
      if (wrong !== undefined) throw new BrokenPromise(`not strict: ${wrong} (${key})`);
    }
  }
}

/** Whether everything that a call wants is there at a time. */
export function fitsAt(claims: readonly Charge[], nowMs: number): boolean {
  return claims.every(({ view, tokens }) => holdsAll(view, tokens, nowMs));
}

/**
 * What one bucket of a call has to look like after the decision; undefined when it does not exist
 * then either.
 */
export function bucketAfter(
  kind: Decision["kind"],
  { stored, view, wanted, tokens, counted }: Charge,
  nowMs: number,
): OracleBucket | undefined {
  if (kind === "granted") return counting(readCharged(view, tokens, nowMs), counted);
  return stored === undefined ? undefined : under(stored, wanted, nowMs, true);
}

/** The key of a bucket. Entities have no spaces in their names. */
function toKey(entityId: string, resource: string): string {
  return `${entityId} ${resource}`;
}

function overriding(wanted: readonly Terms[]): ResolvedTerms {
  return { wanted, sources: new Map(wanted.map(({ name }) => [name, "override"])) };
}

/** What comes back to a balance; the rest only counts. */
function withoutLost(bucket: OracleBucket, ends: Ends, tokens: Tokens, nowMs: number): Tokens {
  const lost = bucket.balances.filter((balance) => {
    const { name } = balance.terms;
    const costMilli = BigInt(listTokens(tokens, name));
    return isReturnLost(balance, { costMilli, takenEndMs: ends.get(name) }, nowMs);
  });
  return among(tokens, (name) => !lost.some(({ terms }) => terms.name === name));
}

function among(tokens: Tokens, isWanted: (name: string) => boolean): Tokens {
  return Object.fromEntries(Object.entries(tokens).filter(([name]) => isWanted(name)));
}

function negative(tokens: Tokens): Tokens {
  return Object.fromEntries(Object.entries(tokens).map(([name, amount]) => [name, -amount]));
}

/** The balance of a limit that a bucket has and shows. */
function findShown(bucket: OracleBucket | undefined, name: string): LimitBalance | undefined {
  return bucket?.balances.find((balance) => !balance.hidden && balance.terms.name === name);
}

/** An override changes no kind of a limit. */
function changesKind(bucket: OracleBucket | undefined, wanted: readonly Terms[]): boolean {
  return wanted.some((terms) => {
    const held = findShown(bucket, terms.name);
    return held !== undefined && held.terms.window?.kind !== terms.window?.kind;
  });
}

/** An override changes the capacity of a limit with windows, and nothing else of it. */
function keepWindows(bucket: OracleBucket | undefined, terms: Terms): Terms {
  const held = findShown(bucket, terms.name)?.terms;
  const isOther = held?.window?.kind === terms.window?.kind && held?.window !== undefined;
  if (!isOther || held.window.definition === terms.window!.definition) return terms;
  return toTerms({ ...toSpec(held), capacity: Number(terms.capacityMilli / 1000n) });
}
