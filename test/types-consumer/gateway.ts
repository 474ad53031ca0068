// A user's project, as strict as the compiler can be, compiled by `tsc -b` against the published
// types. It imports packages, never files.
import {
  Limit,
  RateLimiter,
  RateLimitExceeded,
  ValidationError,
  type Clock,
  type Lease,
  type Repository,
} from "zae-limiter";
import { MemoryRepository } from "zae-limiter/memory";
import { openRepository } from "zae-limiter/open";
import { faultyRepository, ManualClock } from "zae-limiter/testing";

/** What a language model answers. */
interface Answer {
  readonly text: string;
  readonly totalTokens: number;
}

/** Answers a question within the limits of a key. */
export async function ask(
  limiter: RateLimiter,
  key: string,
  callModel: () => Promise<Answer>,
): Promise<string> {
  const answer = await limiter.acquire(
    { entityId: key, resource: "gpt-4", consume: { rpm: 1, tpm: 500 } },
    async (lease) => {
      const result = await callModel();
      lease.settle({ tpm: result.totalTokens });
      return result;
    },
  );
  return answer.text;
}

/** Takes with `await using`, waits, and tells a refusal from other errors. */
export async function stream(
  limiter: RateLimiter,
  signal: AbortSignal,
): Promise<number | undefined> {
  try {
    await using lease = await limiter.acquire({
      entityId: "key",
      resource: "gpt-4",
      consume: {},
      also: { search: { rpm: 1 } },
      waitUpToMs: 5,
      signal,
    });
    await lease.consume({ tpm: 10 });
    lease.resourceLease("search").release({ rpm: 1 });
    await lease.commit();
    return lease.consumed["tpm"];
  } catch (error) {
    if (error instanceof RateLimitExceeded) return error.primaryViolation.retryAfterSeconds;
    if (error instanceof ValidationError)
      throw new TypeError(`${error.field}: ${error.reason}`, { cause: error });
    throw error;
  }
}

/** Sets limits up at every level. */
export async function configure(repository: Repository): Promise<readonly string[]> {
  await repository.setSystemDefaults([Limit.perMinute("rpm", 100)], {
    onUnavailable: "allow",
    principal: "admin",
  });
  await repository.setResourceDefaults("gpt-4", [
    { name: "tpm", capacity: 10, refillAmount: 10, refillPeriodSeconds: 60 },
  ]);
  await repository.createEntity("project", { metadata: { tier: "gold" } });
  await repository.setLimits("project", [Limit.parse("rpm:5/sec")], { resource: "gpt-4" });
  const names: string[] = [];
  let cursor: string | undefined;
  do {
    const page = await repository.listEntities(
      cursor === undefined ? { limit: 10 } : { limit: 10, cursor },
    );
    names.push(...page.items.map((entity) => entity.name));
    cursor = page.cursor;
  } while (cursor !== undefined);
  return names;
}

/** A clock of the user's own, in a repository that fails now and then. */
export function flaky(clock: Clock = new ManualClock()): RateLimiter {
  const repository = faultyRepository(new MemoryRepository({ clock }), (operation) =>
    operation === "settle" ? "error-before" : undefined,
  );
  return new RateLimiter({
    repository,
    onSettlementFailed: (error, lease: Lease) => console.error(error.code, lease.entityId),
  });
}

/** Opens by URL. */
export async function open(): Promise<RateLimiter> {
  return new RateLimiter({ repository: await openRepository("memory:", { namespace: "tenant" }) });
}
