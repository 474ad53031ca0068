/*
 * One of several processes on one table: takes, settles and gives back as fast as it can for a
 * while, then reports what it was answered. Usage: node worker.js ENDPOINT STACK SECONDS SEED
 */
import { Limit, RateLimiter, RateLimiterUnavailable } from "zae-limiter";
import { DynamoRepository } from "zae-limiter/dynamodb";
import { seededRandom } from "zae-limiter/testing";

/** What one process was answered. */
export interface Report {
  readonly granted: number;
  readonly refused: number;
  readonly contended: number;
  /** Net tokens that were answered. */
  readonly consumed: number;
  /** Tokens of calls that failed with an unknown outcome. */
  readonly unknown: number;
  readonly firstMs: number;
  readonly failedConditions: number;
}

/** The one entity that all processes call for. */
export const ENTITY = "hot";
/** Its limit: more is asked for than it gives. */
export const LIMIT = Limit.perSecond("tps", 2000, { burst: 5000 });

/** Calls that each process keeps under way. */
const CONCURRENCY = 4;

if (process.argv[1]?.endsWith("worker.js"))
  await work({
    endpointUrl: process.argv[2]!,
    stack: process.argv[3]!,
    seconds: Number(process.argv[4]),
    seed: Number(process.argv[5]),
  });

async function work(options: {
  readonly endpointUrl: string;
  readonly stack: string;
  readonly seconds: number;
  readonly seed: number;
}): Promise<void> {
  const { endpointUrl, stack, seconds, seed } = options;
  const random = seededRandom(seed);
  const repository = await DynamoRepository.open("app", {
    endpointUrl,
    stack,
    provisioning: "never",
    requestTimeoutMs: 10_000,
  });
  const limiter = new RateLimiter({ repository });
  const counts = { granted: 0, refused: 0, contended: 0, consumed: 0, unknown: 0 };
  const firstMs = Date.now();
  const untilMs = firstMs + seconds * 1000;
  const turn = async (): Promise<void> => {
    const tps = 1 + Math.floor(random() * 100);
    const verdict = await limiter.tryAcquire({ entityId: ENTITY, resource: "r", consume: { tps } });
    if (!verdict.granted) {
      counts.refused += 1;
      return;
    }
    counts.granted += 1;
    const dice = random();
    if (dice < 0.2) return verdict.lease.rollback();
    const total = dice < 0.6 ? tps : Math.floor(random() * 100);
    verdict.lease.settle({ tps: total });
    await verdict.lease.commit();
    counts.consumed += total;
  };
  const client = async (): Promise<void> => {
    while (Date.now() < untilMs) {
      try {
        await turn();
      } catch (error) {
        if (!(error instanceof RateLimiterUnavailable)) throw error;
        counts.contended += 1;
        // What the call took, and what its settlement would have added.
        counts.unknown += 200;
      }
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, client));
  const report: Report = {
    ...counts,
    firstMs,
    failedConditions: repository.getStatistics().failedConditions ?? 0,
  };
  await repository.close();
  process.send?.(report);
}
