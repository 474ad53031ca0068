/*
 * One of the processes of crowd.ts: makes its calls of one round, all at once, and reports what
 * became of them. Usage: node crowd-worker.js ENDPOINT STACK
 */
import { RateLimiter, RateLimiterUnavailable } from "zae-limiter";
import { DynamoRepository } from "zae-limiter/dynamodb";

/** The children of one parent. */
export const CHILDREN = 1000;
/** Entities that are created at once. */
export const PROVISIONED = 50;

/** The calls of one process: a number for each, that of the child. */
export interface Round {
  readonly number: number;
  readonly children: readonly number[];
}

/** What became of them. */
export interface Tally {
  readonly granted: number;
  readonly refused: number;
  readonly unavailable: number;
  readonly requests: number;
  readonly writeUnits: number;
  readonly longestMs: number;
}

export function idOfParent(round: number): string {
  return `parent-${round}`;
}

export function idOfChild(round: number, child: number): string {
  return `child-${round}-${child}`;
}

if (process.argv[1]?.endsWith("crowd-worker.js")) await serve(process.argv[2]!, process.argv[3]!);

async function serve(endpointUrl: string, stack: string): Promise<void> {
  const repository = await DynamoRepository.open("app", {
    endpointUrl,
    stack,
    provisioning: "never",
    requestTimeoutMs: 10_000,
  });
  const limiter = new RateLimiter({ repository });
  process.send!("ready");
  const round = await new Promise<Round>((resolve) => process.once("message", resolve));
  const counts = { granted: 0, refused: 0, unavailable: 0, longestMs: 0 };
  const before = repository.getStatistics();
  await Promise.all(
    round.children.map(async (child) => {
      const entityId = idOfChild(round.number, child);
      const startMs = performance.now();
      try {
        const verdict = await limiter.tryAcquire({ entityId, resource: "r", consume: { n: 1 } });
        if (verdict.granted) await verdict.lease.commit();
        counts[verdict.granted ? "granted" : "refused"] += 1;
      } catch (error) {
        if (!(error instanceof RateLimiterUnavailable)) throw error;
        counts.unavailable += 1;
      }
      counts.longestMs = Math.max(counts.longestMs, performance.now() - startMs);
    }),
  );
  const after = repository.getStatistics();
  const tally: Tally = {
    ...counts,
    requests: after.requests - before.requests,
    writeUnits: after.writes + after.failedConditions - before.writes - before.failedConditions,
  };
  process.send!(tally, () => process.disconnect());
  await repository.close();
}
