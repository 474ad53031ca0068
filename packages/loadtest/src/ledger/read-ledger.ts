import { createReadStream, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Limit, ValidationError, type Amounts } from "zae-limiter";
import type { BucketRecord, EndRecord, GrantRecord, LedgerRecord } from "./records.ts";

/** A grant or the end of a lease, as it concerns one bucket. */
export type BucketEvent = {
  /** The limits of the decision, by name. */
  readonly limits: ReadonlyMap<string, Limit>;
} & (
  | Pick<GrantRecord, "kind" | "amounts" | "sent" | "answered">
  | Omit<EndRecord, "lease" | "buckets">
);

/** What all workers recorded of one bucket. */
export interface BucketHistory {
  readonly entityId: string;
  readonly resource: string;
  readonly namespace: string;
  readonly events: BucketEvent[];
  /** Whether calls of other entities took from it. */
  isParent: boolean;
  /** The limits of the last decision by stored limits, as text. */
  stored: readonly string[] | undefined;
}

/** All ledgers of a folder. */
export interface Book {
  readonly buckets: ReadonlyMap<string, BucketHistory>;
  /** How many grants there are; one of an entity and its parent counts once. */
  readonly grants: number;
  /** When the first repository was opened, by namespace. */
  readonly startedAt: ReadonlyMap<string, number>;
  /** The time of the last record. */
  readonly lastAt: number;
  /** The workers that granted from a store of their own. */
  readonly memoryWorkers: number;
  /** The workers that ended in the middle of calls. */
  readonly incomplete: readonly string[];
  /** Lines that were cut off. */
  readonly tornLines: number;
  /** The entities whose usage is unknown, because a call failed. */
  readonly doubts: ReadonlySet<string>;
  /** Whether limits may have changed after the first grant. */
  readonly hasChanges: boolean;
}

/** The files of workers in a folder, which may be missing. */
export function listLedgers(folder: string): readonly string[] {
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory() !== true) return [];
  return readdirSync(folder).filter((name) => /^worker-.*\.jsonl$/.test(name));
}

/** Reads all ledgers of a folder. */
export async function readBook(folder: string): Promise<Book> {
  const files = listLedgers(folder);
  if (files.length === 0)
    throw new ValidationError("ledger", folder, "must be a folder with ledgers of a load test");
  const reader = new BookReader();
  for (const file of files) {
    const lines = createInterface({ input: createReadStream(join(folder, file)) });
    reader.begin(file);
    for await (const line of lines) reader.read(line);
    reader.end();
  }
  return reader;
}

interface SeenBucket {
  readonly history: BucketHistory;
  readonly limits: ReadonlyMap<string, Limit>;
}

class BookReader implements Book {
  readonly buckets = new Map<string, BucketHistory>();
  readonly startedAt = new Map<string, number>();
  readonly doubts = new Set<string>();
  readonly incomplete: string[] = [];
  grants = 0;
  lastAt = 0;
  tornLines = 0;
  readonly #memories = new Set<string>();
  #firstGrantAt = Infinity;
  #lastChangeAt = 0;

  /** Of one worker. */
  #file = "";
  #store = "";
  #worker = "";
  #namespace = "";
  #isComplete = true;
  #seen = new Map<number, SeenBucket>();
  #open = new Map<number, GrantRecord[]>();

  get memoryWorkers(): number {
    return this.#memories.size;
  }

  get hasChanges(): boolean {
    return this.#lastChangeAt > this.#firstGrantAt;
  }

  begin(file: string): void {
    this.#file = file;
  }

  read(line: string): void {
    const record = parse(line);
    if (record === undefined) {
      this.tornLines += 1;
      return;
    }
    if (record.kind === "start") {
      this.end();
      this.#namespace = record.namespace;
      this.#store = record.store;
      this.#worker = record.store === "memory" ? `${this.#file} ${record.at}` : "";
      const before = this.startedAt.get(record.namespace) ?? Infinity;
      this.startedAt.set(record.namespace, Math.min(before, record.at));
    } else if (record.kind === "bucket") this.#addBucket(record);
    else if (record.kind === "grant") this.#addGrant(record);
    else if (record.kind === "end") this.#addEnd(record);
    else if (record.kind === "doubt") this.doubts.add(record.entityId);
    else if (record.kind === "change")
      this.#lastChangeAt = Math.max(this.#lastChangeAt, record.answered);
    this.#isComplete = record.kind === "idle" || record.kind === "start";
  }

  /**
   * The end of a worker. If it was killed, it may have given its open leases back at any time: the
   * ledger only lacks the end.
   */
  end(): void {
    if (!this.#isComplete) {
      this.incomplete.push(this.#file);
      for (const grants of this.#open.values())
        for (const { lease, buckets, amounts, answered } of grants)
          this.#addEnd({ kind: "end", lease, buckets, deltas: negate(amounts), sent: answered });
    }
    this.#isComplete = true;
    this.#seen = new Map();
    this.#open = new Map();
  }

  #addBucket({ id, entityId, resource, limits, isOverride }: BucketRecord): void {
    const key = [this.#namespace, this.#worker, entityId, resource].join("\n");
    const history = this.buckets.get(key) ?? {
      entityId,
      resource,
      namespace: this.#namespace,
      events: [],
      isParent: false,
      stored: undefined,
    };
    if (!isOverride) history.stored = limits;
    this.buckets.set(key, history);
    const parsed = limits.map((text) => Limit.parse(text));
    this.#seen.set(id, { history, limits: new Map(parsed.map((limit) => [limit.name, limit])) });
  }

  #addGrant(record: GrantRecord): void {
    const { kind, lease, buckets, amounts, sent, answered } = record;
    this.grants += 1;
    this.lastAt = Math.max(this.lastAt, answered);
    this.#firstGrantAt = Math.min(this.#firstGrantAt, sent);
    if (this.#store === "memory") this.#memories.add(this.#worker);
    this.#open.set(lease, [...(this.#open.get(lease) ?? []), record]);
    for (const [index, id] of buckets.entries()) {
      const { history, limits } = this.#findSeen(id);
      history.events.push({ kind, limits, amounts, sent, answered });
      if (index > 0) history.isParent = true;
    }
  }

  #addEnd({ kind, lease, buckets, deltas, sent, answered }: EndRecord): void {
    this.lastAt = Math.max(this.lastAt, answered ?? sent);
    this.#open.delete(lease);
    for (const id of buckets) {
      const { history, limits } = this.#findSeen(id);
      history.events.push({ kind, limits, deltas, sent, answered });
      if (answered === undefined) this.doubts.add(history.entityId);
    }
  }

  #findSeen(id: number): SeenBucket {
    const seen = this.#seen.get(id);
    if (seen === undefined)
      throw new ValidationError("ledger", this.#file, `names bucket ${id} before describing it`);
    return seen;
  }
}

/** Undefined for a line that was cut off: the worker was killed while it wrote. */
function parse(line: string): LedgerRecord | undefined {
  try {
    return (JSON.parse(line) as LedgerRecord | null) ?? undefined;
  } catch {
    return undefined;
  }
}

function negate(amounts: Amounts): Amounts {
  return Object.fromEntries(Object.entries(amounts).map(([name, amount]) => [name, -amount]));
}
