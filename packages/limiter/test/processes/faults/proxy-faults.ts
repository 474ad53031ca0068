import { seededRandom } from "zae-limiter/testing";
import type { Answer, Fault, ProxiedRequest } from "../../support/fault-proxy.ts";
import { MAX_ATTEMPTS } from "./hot-bucket.ts";

/** Which writes are hit, and by what. */
export interface FaultPlan {
  /** The share of write requests that are hit. */
  readonly share: number;
  /** Each is as likely as the others. */
  readonly kinds: readonly Fault[];
  /**
   * Whether a write that was hit at every attempt but the last is let through, so that every
   * outcome can be learned.
   */
  readonly sparesLastAttempt: boolean;
}

/** What passed one proxy. */
export interface ProxyCounts {
  readonly requests: number;
  readonly writeUnits: number;
  readonly readUnits: number;
  readonly faults: number;
  /** Writes that were hit at every attempt, of which nobody can know the outcome. */
  readonly hopeless: number;
}

const NONE: ProxyCounts = { requests: 0, writeUnits: 0, readUnits: 0, faults: 0, hopeless: 0 };
/** DynamoDB bills a write of a transaction twice. */
const TRANSACTION_WRITE_UNITS = 2;

/** Hits the writes of one process by a seed, and counts what all its requests cost. */
export class ProxyFaults {
  plan: FaultPlan | undefined;
  readonly #random: () => number;
  /** Hits in a row, by write. */
  readonly #hits = new Map<string, number>();
  #counts = NONE;

  constructor(seed: number) {
    this.#random = seededRandom(seed);
  }

  decide(request: ProxiedRequest): Fault | undefined {
    this.#add({ requests: 1 });
    const target = targetOf(request);
    if (this.plan === undefined || target === undefined) return undefined;
    const { share, kinds, sparesLastAttempt } = this.plan;
    const hits = (this.#hits.get(target) ?? 0) + 1;
    const isSpared = sparesLastAttempt && hits === MAX_ATTEMPTS;
    if (this.#random() >= share || isSpared) {
      this.#hits.delete(target);
      return undefined;
    }
    const isHopeless = hits === MAX_ATTEMPTS;
    this.#hits.set(target, isHopeless ? 0 : hits);
    this.#add({ faults: 1, hopeless: isHopeless ? 1 : 0 });
    return kinds[Math.floor(this.#random() * kinds.length)];
  }

  observe(request: ProxiedRequest, answer: Answer): void {
    this.#add(billOf(request, answer));
  }

  /** What has passed since the last time. */
  takeCounts(): ProxyCounts {
    const counts = this.#counts;
    this.#counts = NONE;
    return counts;
  }

  #add(counts: Partial<ProxyCounts>): void {
    this.#counts = sumOf([this.#counts, { ...NONE, ...counts }]);
  }
}

/** Adds up the same counts of several; what is no number has no sum. */
export function sumOf<Counts extends object>(all: readonly Counts[]): Counts {
  const sum: Record<string, number> = {};
  for (const counts of all)
    for (const [name, count] of Object.entries(counts))
      if (typeof count === "number") sum[name] = (sum[name] ?? 0) + count;
  return sum as Counts;
}

/**
 * What names a write over its attempts: a process writes to one item one after another, and a
 * transaction has a token. Undefined for what is no write to a bucket.
 */
function targetOf({ operation, input }: ProxiedRequest): string | undefined {
  const { ClientRequestToken, Key, Item } = input as {
    readonly ClientRequestToken?: string;
    readonly Key?: { readonly PK: { readonly S: string } };
    readonly Item?: { readonly PK: { readonly S: string } };
  };
  if (operation === "TransactWriteItems") return ClientRequestToken;
  return operation === "UpdateItem" || operation === "PutItem" ? (Key ?? Item)?.PK.S : undefined;
}

/**
 * What the engine's answer is billed. Replies carry no units for conditions that failed, which AWS
 * bills like writes.
 */
function billOf(
  { operation, input }: ProxiedRequest,
  { status, body }: Answer,
): Partial<ProxyCounts> {
  const { __type: type = "", ConsumedCapacity } = JSON.parse(body) as {
    readonly __type?: string;
    readonly ConsumedCapacity?: Capacity | readonly Capacity[];
  };
  if (status !== 200) {
    if (type.endsWith("#ConditionalCheckFailedException")) return { writeUnits: 1 };
    if (!type.endsWith("#TransactionCanceledException")) return {};
    const { length } = input["TransactItems"] as readonly unknown[];
    return { writeUnits: TRANSACTION_WRITE_UNITS * length };
  }
  const units = [ConsumedCapacity ?? []]
    .flat()
    .reduce((sum, { CapacityUnits = 0 }) => sum + CapacityUnits, 0);
  return /Get|Query|Scan/.test(operation) ? { readUnits: units } : { writeUnits: units };
}

interface Capacity {
  readonly CapacityUnits?: number;
}
