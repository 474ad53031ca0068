import { appendFileSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { threadId } from "node:worker_threads";
import { Limit, type Amounts, type LimitStatus, type Repository } from "zae-limiter";
import type { EndRecord, GrantRecord, LedgerRecord } from "./records.ts";

/** Where a ledger is written, and for what. */
export interface LedgerOptions {
  /** The folder; made if there is none. */
  readonly folder: string;
  /** The repository of the worker; its clock gives the times. */
  readonly repository: Pick<Repository, "clock" | "namespaceName">;
  /** The scheme of its URL, such as `sqlite`. */
  readonly store: string;
  /** When the repository was about to be opened. @default now */
  readonly startedAt?: number;
}

/** A worker that is killed loses at most the records of this time. */
const FLUSH_EVERY_MS = 200;

/** After the last user, the ledger is written sooner: Artillery may end the worker at once. */
const FLUSH_IDLE_MS = 10;

/** A bucket that this worker has seen, and the limits of its last decision. */
interface SeenBucket {
  readonly id: number;
  readonly limits: readonly Limit[];
}

/**
 * Appends to the file of this worker what was granted and settled. While calls are under way, the
 * last record is never `idle`, so a file that ends with it is complete.
 */
export class Ledger {
  readonly #path: string;
  readonly #clock: Repository["clock"];
  readonly #seen = new Map<string, SeenBucket>();
  readonly #timer: NodeJS.Timeout;
  #idleTimer: NodeJS.Timeout | undefined;
  #lines: string[] = [];
  #flushedAtMs = 0;
  #lastId = 0;
  #active = 0;
  #isIdle = true;

  constructor({ folder, repository, store, startedAt }: LedgerOptions) {
    mkdirSync(folder, { recursive: true });
    this.#path = join(folder, `worker-${process.pid}-${threadId}.jsonl`);
    this.#clock = repository.clock;
    const namespace = repository.namespaceName;
    const at = startedAt ?? this.#clock.now();
    this.#lines.push(JSON.stringify({ kind: "start", at, store, namespace }));
    this.#timer = setInterval(() => this.flush(), FLUSH_EVERY_MS).unref();
    this.flush();
  }

  /** The time of the repository's clock. */
  now(): number {
    return this.#clock.now();
  }

  /** A call begins. It is noted on disk before the store can have granted anything. */
  enter(): void {
    this.#active += 1;
    if (!this.#isIdle) return;
    this.#isIdle = false;
    this.#append({ kind: "busy" });
    this.flush();
  }

  /** A call has ended, or its lease was abandoned. */
  leave(): void {
    this.#active -= 1;
    if (this.#active > 0) return;
    this.#idleTimer ??= setTimeout(() => {
      this.#idleTimer = undefined;
      if (this.#active === 0) this.flush();
    }, FLUSH_IDLE_MS);
  }

  /** Makes the id of a lease. */
  newLease(): number {
    return (this.#lastId += 1);
  }

  /**
   * Notes what a lease took. The statuses name the buckets, and the limits of the decision. Returns
   * the ids of the buckets of each resource: the entity's and, if it cascades, its parent's.
   */
  noteGrant(
    grant: Pick<GrantRecord, "lease" | "sent" | "answered">,
    taken: Readonly<Record<string, Amounts>>,
    statuses: readonly LimitStatus[],
  ): ReadonlyMap<string, readonly number[]> {
    const found = Object.entries(taken).map(([resource, amounts]) => {
      const own = statuses.filter((status) => status.resource === resource);
      const owners = [...new Set(own.map(({ entityId }) => entityId))];
      const buckets = owners.map((entityId) =>
        this.#findBucket(own.filter((status) => status.entityId === entityId)),
      );
      this.#append({ kind: "grant", ...grant, buckets, amounts });
      return [resource, buckets] as const;
    });
    return new Map(found);
  }

  /** Notes the end of a lease on one resource. */
  noteEnd(end: Omit<EndRecord, "kind">): void {
    this.#append({ kind: "end", ...end });
  }

  /** Notes that a call failed: what it did is unknown. */
  noteDoubt(entityId: string): void {
    this.#append({ kind: "doubt", entityId });
  }

  /** Notes a call that may have changed limits. */
  noteChange(call: string, sent: number): void {
    this.#append({ kind: "change", call, sent, answered: this.now() });
  }

  /** Writes what was noted. */
  flush(): void {
    this.#flushedAtMs = performance.now();
    if (this.#active === 0 && !this.#isIdle) {
      this.#isIdle = true;
      this.#lines.push(JSON.stringify({ kind: "idle", at: this.now() }));
    }
    if (this.#lines.length === 0) return;
    const text = `${this.#lines.join("\n")}\n`;
    this.#lines = [];
    appendFileSync(this.#path, text);
  }

  /** Writes the rest and stops. */
  close(): void {
    clearInterval(this.#timer);
    clearTimeout(this.#idleTimer);
    this.flush();
  }

  /** Writes in time even if the event loop is too busy for timers. */
  #append(record: LedgerRecord): void {
    this.#lines.push(JSON.stringify(record));
    if (performance.now() - this.#flushedAtMs >= FLUSH_EVERY_MS) this.flush();
  }

  /** The id of a bucket under these limits: a new one if they differ from its last decision's. */
  #findBucket(statuses: readonly LimitStatus[]): number {
    const { entityId, resource, source } = statuses[0]!;
    const key = `${entityId}\n${resource}`;
    const seen = this.#seen.get(key);
    const isSame = ({ limit }: LimitStatus, index: number): boolean =>
      limit === seen?.limits[index];
    if (seen?.limits.length === statuses.length && statuses.every(isSame)) return seen.id;
    const id = (this.#lastId += 1);
    const limits = statuses.map(({ limit }) => limit);
    this.#seen.set(key, { id, limits });
    const texts = limits.map((limit) => Limit.format(limit));
    const isOverride = source === "override";
    this.#append({ kind: "bucket", id, entityId, resource, limits: texts, isOverride });
    return id;
  }
}
