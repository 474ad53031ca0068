import {
  Limit,
  RateLimiter,
  RateLimiterUnavailable,
  RateLimitExceeded,
  VERSION,
  ZaeLimiterError,
  type AcquireRequest,
  type AcquireResult,
  type Amounts,
  type Availability,
  type Entity,
  type Lease,
  type LeaseOfResource,
  type LimitKind,
  type LimitStatus,
  type Page,
  type QuotaLimit,
  type RateLimit,
  type Repository,
  type UsageQuery,
} from "zae-limiter";
import { MemoryRepository } from "zae-limiter/memory";
import { ManualClock, seededRandom } from "zae-limiter/testing";
import { expectTypeOf } from "vitest";

declare const limiter: RateLimiter;
declare const lease: Lease;
declare const repository: Repository;
declare const verdict: AcquireResult;
const call: AcquireRequest = { entityId: "e", resource: "r", consume: { rpm: 1 } };

// What the work returns is what acquire returns, awaited once.
expectTypeOf(limiter.acquire(call, () => 5)).toEqualTypeOf<Promise<number>>();
expectTypeOf(limiter.acquire(call, async () => "text")).toEqualTypeOf<Promise<string>>();
expectTypeOf(limiter.acquire(call)).toEqualTypeOf<Promise<Lease>>();
expectTypeOf(limiter.tryAcquire(call)).toEqualTypeOf<Promise<AcquireResult>>();
expectTypeOf(limiter.check(call)).toEqualTypeOf<Promise<Availability>>();
expectTypeOf(limiter.available("e", "r")).toEqualTypeOf<Promise<Record<string, number>>>();
expectTypeOf(limiter.timeUntilAvailable("e", "r", { rpm: 1 })).toEqualTypeOf<Promise<number>>();

// A verdict must be looked at before it is used.
if (verdict.granted)
  expectTypeOf(verdict).toEqualTypeOf<{ readonly granted: true; readonly lease: Lease }>();
else expectTypeOf(verdict.refusal).toEqualTypeOf<RateLimitExceeded>();
// @ts-expect-error: an unchecked verdict has no lease
void verdict.lease;

// Requests are plain, read-only data; what is optional may be left out, but not be undefined.
expectTypeOf<{
  entityId: string;
  resource: string;
  consume: { rpm: number };
}>().toExtend<AcquireRequest>();
// @ts-expect-error: amounts are required
void ({ entityId: "e", resource: "r" } satisfies AcquireRequest);
// @ts-expect-error: amounts are numbers
void ({ entityId: "e", resource: "r", consume: { rpm: "1" } } satisfies AcquireRequest);
// @ts-expect-error: a misspelt option is found
void ({ ...call, waitUpTo: 5 } satisfies AcquireRequest);
// @ts-expect-error: requests cannot be changed
call.consume["rpm"] = 5;

expectTypeOf(lease).toExtend<LeaseOfResource>();
expectTypeOf(lease).toExtend<AsyncDisposable>();
expectTypeOf(lease.consumed).toEqualTypeOf<Amounts>();
expectTypeOf(lease.settle).returns.toBeVoid();
expectTypeOf(lease.commit).returns.toEqualTypeOf<Promise<void>>();
// @ts-expect-error: leases are made by the limiter
void new (lease.constructor as typeof Lease)();

expectTypeOf(
  new MemoryRepository({ clock: new ManualClock(), random: seededRandom(1) }),
).toExtend<Repository>();
expectTypeOf(repository.getEntity).returns.resolves.toEqualTypeOf<Entity | undefined>();
expectTypeOf(repository.listEntities).returns.resolves.toEqualTypeOf<Page<Entity>>();
expectTypeOf(repository.getUsageSummary).parameter(0).toEqualTypeOf<UsageQuery>();

expectTypeOf(Limit.perMinute).toBeCallableWith("rpm", 100, { burst: 200 });
expectTypeOf(Limit.perMinute).returns.toEqualTypeOf<RateLimit>();
expectTypeOf(Limit.quota).returns.toEqualTypeOf<QuotaLimit>();
expectTypeOf(Limit.parse).toEqualTypeOf<(text: string) => Limit>();
expectTypeOf<Limit["kind"]>().toEqualTypeOf<LimitKind | undefined>();

expectTypeOf<RateLimitExceeded>().toExtend<ZaeLimiterError>();
expectTypeOf<RateLimiterUnavailable>().toExtend<Error>();
expectTypeOf<RateLimitExceeded["violations"]>().toEqualTypeOf<readonly LimitStatus[]>();
expectTypeOf<RateLimitExceeded["retryAfterHeader"]>().toEqualTypeOf<string | undefined>();
expectTypeOf(VERSION).toBeString();
