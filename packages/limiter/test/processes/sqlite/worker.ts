/*
 * One of several processes on one file: takes, settles and gives back as fast as it can for a
 * while, then reports what it was answered. Usage: node worker.js FILE SECONDS SEED
 */
import { once } from "node:events";
import { Limit, RateLimiter } from "zae-limiter";
import { SqliteRepository } from "zae-limiter/sqlite";
import { seededRandom } from "zae-limiter/testing";
import { isBusy, observedDatabase } from "./observed-database.ts";

/** What one process was answered. */
export interface Report {
  readonly granted: number;
  readonly refused: number;
  /** Net tokens by entity, as answered. */
  readonly consumed: Readonly<Record<string, number>>;
  /** Granted and not rolled back, by entity. */
  readonly requests: Readonly<Record<string, number>>;
  readonly longestCallMs: number;
  readonly busyCalls: number;
  /** Those of them that took longer than a call that does not wait for the lock. */
  readonly slowBusyCalls: number;
  readonly retries: number;
  readonly firstMs: number;
}

/** Two children that many and fewer calls are for, and their parent. */
export const ENTITIES = ["hot", "warm", "project"];
/** The resource of all calls. */
export const RESOURCE = "gpt-4";
/** The limit of each entity. */
export const LIMIT = Limit.perSecond("tps", 4000, { burst: 2000 });
/** How long a process waits for the file. */
export const LOCK_TIMEOUT_MS = 5000;

/**
 * A driver call that ends with busy returns at once; this leaves room for a slow disk, not for
 * waiting.
 */
const LONGEST_BUSY_CALL_MS = 20;

/** Calls that each process keeps under way. */
const CONCURRENCY = 8;

if (process.argv[1]?.endsWith("worker.js"))
  await work(process.argv[2]!, Number(process.argv[3]), Number(process.argv[4]));

async function work(path: string, seconds: number, seed: number): Promise<void> {
  const busy = { calls: 0, slow: 0, switches: 0 };
  const database = await observedDatabase(path, {
    before: () => (busy.switches = process.resourceUsage().involuntaryContextSwitches),
    failed: (_, error, tookMs) => {
      if (!isBusy(error)) return;
      busy.calls += 1;
      // Who lost the processor in the middle of a call has not waited for the lock.
      if (process.resourceUsage().involuntaryContextSwitches !== busy.switches) return;
      if (tookMs > LONGEST_BUSY_CALL_MS) busy.slow += 1;
    },
  });
  const random = seededRandom(seed);
  const repository = await SqliteRepository.open(path, {
    database,
    random,
    lockTimeoutMs: LOCK_TIMEOUT_MS,
  });
  const limiter = new RateLimiter({ repository });
  const counts = { granted: 0, refused: 0, longestCallMs: 0 };
  const consumed = new Map<string, number>();
  const requests = new Map<string, number>();
  const timed = async <T>(call: Promise<T>): Promise<T> => {
    const startedMs = performance.now();
    const answer = await call;
    counts.longestCallMs = Math.max(counts.longestCallMs, performance.now() - startedMs);
    return answer;
  };
  // All start together: a process that starts late on a busy machine would not meet the others.
  process.send?.("ready");
  await once(process, "message");
  const firstMs = Date.now();
  const untilMs = firstMs + seconds * 1000;
  const client = async (): Promise<void> => {
    while (Date.now() < untilMs) {
      const entityId = random() < 0.5 ? "hot" : "warm";
      const tps = 1 + Math.floor(random() * 40);
      const verdict = await timed(
        limiter.tryAcquire({ entityId, resource: RESOURCE, consume: { tps } }),
      );
      if (!verdict.granted) {
        counts.refused += 1;
        continue;
      }
      counts.granted += 1;
      const { lease } = verdict;
      const end = random();
      if (end < 0.2) {
        await timed(lease.rollback());
        continue;
      }
      const total = end < 0.6 ? tps : Math.floor(random() * 60);
      lease.settle({ tps: total });
      await timed(lease.commit());
      count(consumed, entityId, total);
      count(requests, entityId, 1);
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, client));
  const report: Report = {
    ...counts,
    consumed: Object.fromEntries(consumed),
    requests: Object.fromEntries(requests),
    busyCalls: busy.calls,
    slowBusyCalls: busy.slow,
    retries: repository.getStatistics().retries,
    firstMs,
  };
  await repository.close();
  database.close();
  process.send?.(report);
}

/** Adds to an entity, and to "project" what "warm" passes on to it. */
function count(map: Map<string, number>, entityId: string, amount: number): void {
  map.set(entityId, (map.get(entityId) ?? 0) + amount);
  if (entityId === "warm") map.set("project", (map.get("project") ?? 0) + amount);
}
