import { seededRandom } from "zae-limiter/testing";
import type { Answer, Fault, ProxiedRequest } from "../../support/fault-proxy.ts";
import { isStatementFault, type StatementFault } from "../../support/statement-faults.ts";
import { writtenKeys } from "../../support/written-items.ts";
import { MAX_ATTEMPTS } from "./hot-bucket.ts";

/** Which writes are hit, and by what. */
export interface FaultPlan {
  /** The share of write requests that are hit. */
  readonly share: number;
  /** Each is as likely as the others. */
  readonly kinds: readonly Fault[];
  /**
   * What shared requests suffer instead, every second one: as a whole, or each of their statements.
   */
  readonly ofShared?: readonly (Fault | StatementFault)[];
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
  /** Requests that several writes share, and those of them that were hit. */
  readonly shared: number;
  readonly sharedFaults: number;
  /** Writes that were hit at every attempt, so that their outcome is unknown. */
  readonly hopeless: number;
}

const NONE: ProxyCounts = {
  requests: 0,
  writeUnits: 0,
  readUnits: 0,
  faults: 0,
  shared: 0,
  sharedFaults: 0,
  hopeless: 0,
};
/** DynamoDB bills a write of a transaction twice. */
const TRANSACTION_WRITE_UNITS = 2;

/** The share of shared requests that are hit: there are few of them. */
const SHARED_SHARE = 0.5;

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
    const isShared = request.operation === "BatchExecuteStatement";
    this.#add({ requests: 1, shared: isShared ? 1 : 0 });
    const targets = listTargets(request);
    if (this.plan === undefined || targets.length === 0) return undefined;
    const { kinds, ofShared = kinds, sparesLastAttempt } = this.plan;
    const hits = 1 + Math.max(...targets.map((target) => this.#hits.get(target) ?? 0));
    const isSpared = sparesLastAttempt && hits === MAX_ATTEMPTS;
    if (this.#random() >= (isShared ? SHARED_SHARE : this.plan.share) || isSpared) {
      for (const target of targets) this.#hits.delete(target);
      return undefined;
    }
    const isHopeless = hits === MAX_ATTEMPTS;
    for (const target of targets) this.#hits.set(target, isHopeless ? 0 : hits);
    this.#add({ faults: 1, sharedFaults: isShared ? 1 : 0, hopeless: isHopeless ? 1 : 0 });
    const possible = isShared ? ofShared : kinds;
    const kind = possible[Math.floor(this.#random() * possible.length)]!;
    return isShared && isStatementFault(kind) ? { statements: () => kind } : (kind as Fault);
  }

  observe(request: ProxiedRequest, answer: Answer): void {
    this.#add(getBill(request, answer));
  }

  /** What has passed since the last time. */
  takeCounts(): ProxyCounts {
    const counts = this.#counts;
    this.#counts = NONE;
    return counts;
  }

  #add(counts: Partial<ProxyCounts>): void {
    this.#counts = addUp([this.#counts, { ...NONE, ...counts }]);
  }
}

/** Adds up the same counts of several; what is not a number has no sum. */
export function addUp<Counts extends object>(all: readonly Counts[]): Counts {
  const sum: Record<string, number> = {};
  for (const counts of all)
    for (const [name, count] of Object.entries(counts))
      if (typeof count === "number") sum[name] = (sum[name] ?? 0) + count;
  return sum as Counts;
}

/**
 * What names the writes of a request over their attempts: a process writes to one item one after
 * another, and a transaction has a token. Empty for what is not a write to a bucket.
 */
function listTargets({ operation, input }: ProxiedRequest): readonly string[] {
  if (operation === "TransactWriteItems") return [String(input["ClientRequestToken"])];
  return writtenKeys(operation, input).map(({ PK }) => PK.S);
}

/**
 * What the engine's answer is billed. Replies carry no units for conditions that failed, which AWS
 * bills like writes.
 */
function getBill(
  { operation, input }: ProxiedRequest,
  { status, body }: Answer,
): Partial<ProxyCounts> {
  const {
    __type: type = "",
    ConsumedCapacity,
    Responses,
  } = JSON.parse(body) as {
    readonly __type?: string;
    readonly Responses?: readonly { readonly Error?: { readonly Code?: string } }[];
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
  if (/Get|Query|Scan/.test(operation)) return { readUnits: units };
  const failed =
    operation === "BatchExecuteStatement"
      ? (Responses ?? []).filter(({ Error: error }) => error?.Code === "ConditionalCheckFailed")
      : [];
  return { writeUnits: units + failed.length };
}

interface Capacity {
  readonly CapacityUnits?: number;
}
