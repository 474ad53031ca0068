/*
 * What was granted in each window of each quota of one bucket, less what was given back to it. A
 * window is known by its end. For the latest one
 *
 *   used + what its shards hold + the shares of the shards that have yet to open it = capacity
 *
 * Splits and merges use nothing, so one that fills a window, or loses or doubles a share, shows
 * here. An earlier window is left by shards, with what they hold or owe.
 */
import {
  getCapacity,
  isQuota,
  limitNames,
  type StoredBucket,
  type StoredLimit,
} from "../../oracle/stored-bucket.ts";
import { isMerge, isSplit, type AppliedWrite } from "./write-check.ts";

/** The windows of one bucket. */
export class WindowLedger {
  readonly #used = new Map<string, bigint>();

  /** Notes a write, and says what is wrong with the bucket after it. */
  note(write: AppliedWrite, bucket: StoredBucket): string | undefined {
    const names = limitNames(bucket).filter((name) => isQuota(bucket, name));
    if (!isSplit(write) && !isMerge(write))
      for (const name of names)
        for (const [number, shard] of write.after)
          this.#use(name, write.before.get(number)?.limits.get(name), shard.limits.get(name)!);
    return names.map((name) => this.#findWrong(name, bucket)).find(Boolean);
  }

  #use(name: string, before: StoredLimit | undefined, after: StoredLimit): void {
    // A window that opens begins with the share; a changed capacity moves the balance with it.
    const used =
      before?.endMs === after.endMs ? freeMilli(after) - freeMilli(before!) : freeMilli(after);
    const key = `${name} until ${after.endMs}`;
    this.#used.set(key, (this.#used.get(key) ?? 0n) + used);
  }

  #findWrong(name: string, bucket: StoredBucket): string | undefined {
    const limits = [...bucket.values()].flatMap(({ limits: own }) => own.get(name) ?? []);
    const latestMs = Math.max(...limits.map(({ endMs }) => endMs!));
    if (latestMs === 0) return undefined;
    const used = this.#used.get(`${name} until ${latestMs}`) ?? 0n;
    const held = limits.reduce(
      (sum, { endMs, units, terms }) => sum + (endMs === latestMs ? units : terms.capacityMilli),
      0n,
    );
    const capacity = getCapacity(bucket, name);
    if (used < 0n) return `${name} took back ${-used} that its window never gave`;
    return used + held === capacity
      ? undefined
      : `${name} gave ${used} and holds ${held}, of ${capacity} until ${latestMs}`;
  }
}

/** What a limit holds less than its share. */
function freeMilli({ terms, units }: StoredLimit): bigint {
  return terms.capacityMilli - units;
}
