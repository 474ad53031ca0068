import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, it } from "vitest";
import { Limit, RateLimiter, type RateLimitExceeded } from "zae-limiter";
import { MemoryRepository } from "zae-limiter/memory";
import { ManualClock } from "zae-limiter/testing";
import { fullBucket } from "../core/bucket/bucket.ts";
import { buildPolicy } from "../core/bucket/policy.ts";
import { Refused } from "../core/bucket/refusal.ts";

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

/** A value is usually collected in the second turn. */
const MOST_TURNS = 20;

const REQUEST = { entityId: "key-1", resource: "gpt-4", consume: { rpm: 2 } };

describe("a refusal as a value", () => {
  it("has statuses that the limiter itself does not read", async () => {
    let looks = 0;
    class Watched extends Refused {
      override get statuses() {
        looks += 1;
        return super.statuses;
      }
    }
    class WatchedRepository extends MemoryRepository {
      override consume(): Watched {
        const { entityId, resource, consume: amounts } = REQUEST;
        const policy = buildPolicy([Limit.perMinute("rpm", 1)], "system");
        const bucket = fullBucket(policy.bucketLimits, 0);
        return new Watched([{ entityId, resource, policy, amounts, bucket }], 0);
      }
    }
    await using repository = new WatchedRepository();
    const verdict = await new RateLimiter({ repository }).tryAcquire(REQUEST);
    expect(verdict.granted).toBe(false);
    expect(looks).toBe(0);
    expect(!verdict.granted && verdict.refusal.message).toMatch(/can never fit/);
    expect(looks).toBe(1);
  });

  it("does not keep its repository alive, whether its statuses were read or not", async () => {
    const [looked, unseen] = [await refuse(), await refuse()];
    expect(looked.refusal.statuses).toHaveLength(1);
    const isHeld = (): boolean =>
      [looked, unseen].some(({ repository }) => repository.deref() !== undefined);
    for (let turns = 0; isHeld() && turns < MOST_TURNS; turns += 1) {
      await new Promise((resolve) => setImmediate(resolve));
      collectGarbage();
    }
    expect(isHeld()).toBe(false);
    expect(unseen.refusal.statuses).toEqual(looked.refusal.statuses);
  });
});

/** A refusal by a repository that nothing else refers to. */
async function refuse(): Promise<{
  readonly refusal: RateLimitExceeded;
  readonly repository: WeakRef<MemoryRepository>;
}> {
  const repository = new MemoryRepository({ clock: new ManualClock() });
  await repository.setSystemDefaults([Limit.perMinute("rpm", 3)]);
  const limiter = new RateLimiter({ repository });
  const first = await limiter.tryAcquire(REQUEST);
  if (first.granted) await first.lease.commit();
  const verdict = await limiter.tryAcquire(REQUEST);
  if (verdict.granted) throw new Error("granted, but should be refused");
  return { refusal: verdict.refusal, repository: new WeakRef(repository) };
}
