/*
 * What a limiter warns about once: mistakes with leases for which an error would come too late, or
 * for which there is no caller to throw to.
 *
 *   settled without usage   the total of a limit was undefined, so its estimate stays
 *   never ended             a lease whose caller has to end it was garbage collected open
 *
 * The second is found with a FinalizationRegistry. Watching a lease takes longer than acquiring it
 * in memory, so only the first ones are watched, and then a sample, until one was found.
 *
 *   limiter ──▶ registry ──▶ record ◀── lease
 *
 * Nothing here refers to the lease, so that it can be collected. The lease notes its end in the
 * record.
 */
import { emitWarning } from "../repository/warning.ts";

/** A forgotten `commit` is found in a program's first minutes, and in its tests. */
const WATCHED_AT_FIRST = 100;

/**
 * Afterwards one lease of this many is watched, which costs 9 ns a lease instead of 1.1 µs.
 */
const WATCHED_ONE_IN = 128;

/** What is known of a watched lease. It must not refer to the lease. */
export interface LeaseRecord {
  readonly entityId: string;
  readonly resource: string;
  /** The caller, if NODE_DEBUG asks for it. */
  readonly acquiredAt: string | undefined;
  isOpen: boolean;
}

/** The part of a lease that a watch needs. */
interface WatchedLease {
  readonly entityId: string;
  readonly resource: string;
  readonly degraded: boolean;
  recordEndIn(record: LeaseRecord): void;
}

/** A lease that will be watched once it is granted. */
export interface LeaseWatch {
  readonly acquiredAt: string | undefined;
}

const WATCH: LeaseWatch = { acquiredAt: undefined };

/** The warnings of one limiter. Each is emitted once. */
export class LeaseWarnings {
  readonly #isDebugging = asksForDebugging();
  /** Undefined where the runtime has none, and after the warning. */
  #registry: FinalizationRegistry<LeaseRecord> | undefined;
  #acquires = 0;
  #hasWarnedOfUsage = false;

  constructor() {
    if (typeof FinalizationRegistry === "function")
      this.#registry = new FinalizationRegistry((record) => this.#onCollected(record));
  }

  /**
   * Called by an acquire whose caller has to end the lease. Returns a watch if the lease should be
   * watched.
   */
  begin(): LeaseWatch | undefined {
    if (this.#registry === undefined) return undefined;
    if (this.#isDebugging) return { acquiredAt: findCaller() };
    this.#acquires += 1;
    return this.#acquires <= WATCHED_AT_FIRST || this.#acquires % WATCHED_ONE_IN === 0
      ? WATCH
      : undefined;
  }

  /** Watches a lease. One that was granted without the store has nothing to end. */
  watch(lease: WatchedLease, { acquiredAt }: LeaseWatch): void {
    const { entityId, resource, degraded } = lease;
    if (degraded) return;
    const record = { entityId, resource, acquiredAt, isOpen: true };
    lease.recordEndIn(record);
    this.#registry?.register(lease, record);
  }

  /** Some totals of a settlement were undefined. */
  noteUsageMissing(entityId: string, resource: string, limitNames: readonly string[]): void {
    if (this.#hasWarnedOfUsage) return;
    this.#hasWarnedOfUsage = true;
    emitWarning(
      `lease.settle got no total of ${limitNames.join(" and ")} for a call of ${entityId} on ${resource}, so the amount taken before ` +
        "counts as the cost. Did the response report no usage? Streams often do so only on request. " +
        "This limiter does not warn again.",
      { code: "WARN_LIMITER_USAGE_MISSING" },
    );
  }

  #onCollected({ entityId, resource, acquiredAt, isOpen }: LeaseRecord): void {
    if (!isOpen || this.#registry === undefined) return;
    this.#registry = undefined;
    emitWarning(
      `A lease of ${entityId} on ${resource} was garbage collected before it was committed or rolled back: its ` +
        "differences were not written, and its tokens stay charged. Commit every lease, bind it " +
        "with await using, or pass a function to acquire. This limiter does not warn again. " +
        (acquiredAt === undefined
          ? "Set NODE_DEBUG=zae-limiter to see where the lease was acquired."
          : `The lease was acquired here:\n${acquiredAt}`),
      { code: "WARN_LIMITER_LEASE_NOT_ENDED" },
    );
  }
}

/** Whether NODE_DEBUG names this library. Browsers and edge runtimes have no such variable. */
function asksForDebugging(): boolean {
  const { process } = globalThis as {
    readonly process?: { readonly env?: Readonly<Record<string, string | undefined>> };
  };
  const names = process?.env?.["NODE_DEBUG"] ?? "";
  return names.split(",").some((name) => name.trim().toLowerCase() === "zae-limiter");
}

/** The stack above the method of the limiter that was called. */
function findCaller(): string {
  // The first lines are the message, this function, `begin` and the method.
  const lines = new Error("The lease was acquired here.").stack?.split("\n").slice(4) ?? [];
  return lines.join("\n");
}
