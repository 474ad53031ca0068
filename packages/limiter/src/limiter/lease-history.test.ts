import { Limit, RateLimiter, RateLimitExceeded, ValidationError, type Lease } from "zae-limiter";
import { MemoryRepository } from "zae-limiter/memory";
import { faultyRepository, ManualClock, type Fault } from "zae-limiter/testing";
import * as fc from "fast-check";
import { expect, it } from "vitest";

const CAPACITY = 1000;
const RESOURCES = ["r", "s"];

const amount = fc.integer({ min: 0, max: 400 });
const fault = fc.constantFrom<Fault | undefined>(
  undefined,
  undefined,
  undefined,
  "error-before",
  "error-after",
);
const operation = fc.oneof(
  fc.record({ kind: fc.constant("acquire" as const), r: amount, s: fc.option(amount) }),
  fc.record({
    kind: fc.constantFrom(
      "consume" as const,
      "adjust" as const,
      "release" as const,
      "settle" as const,
    ),
    lease: fc.nat(),
    resource: fc.nat({ max: 1 }),
    amount,
  }),
  fc.record({
    kind: fc.constantFrom("commit" as const, "rollback" as const),
    lease: fc.nat(),
    fault,
  }),
);

/** What a lease should hold of each resource: what it has taken, and the total it was set to. */
interface Held {
  readonly lease: Lease;
  readonly parts: Map<string, { taken: number; total: number }>;
}

/** Everything that was charged, computed by additions only. */
class Ledger {
  readonly charged = new Map(RESOURCES.map((resource) => [resource, 0]));
  requests = 0;
  open: Held[] = [];

  charge(resource: string, tokens: number): void {
    this.charged.set(resource, this.charged.get(resource)! + tokens);
  }
}

it("charges a child and its parent exactly what leases hold, through every history of takes, differences, ends and lost responses", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(operation, { maxLength: 40, size: "max" }), async (operations) => {
      // The clock stands still: nothing is earned, so every token is accounted for.
      const repository = new MemoryRepository({ clock: new ManualClock() });
      await repository.setSystemDefaults([Limit.perDay("tpm", CAPACITY)]);
      await repository.createEntity("parent");
      await repository.createEntity("child", { parentId: "parent", cascade: true });
      let next: Fault | undefined;
      const flaky = faultyRepository(repository, (name) =>
        name === "settle" || name === "giveBack" ? takeFault() : undefined,
      );
      const takeFault = (): Fault | undefined => {
        const now = next;
        next = undefined;
        return now;
      };
      const limiter = new RateLimiter({ repository: flaky });
      const ledger = new Ledger();
      for (const one of operations) {
        if (one.kind === "acquire") await acquire(limiter, ledger, one.r, one.s);
        else if ("fault" in one) {
          next = one.fault;
          await end(ledger, one.lease, one.kind);
        } else await change(ledger, one.kind, one.lease, RESOURCES[one.resource]!, one.amount);
        await check(repository, limiter, ledger);
      }
    }),
    { numRuns: 100 },
  );
});

async function acquire(
  limiter: RateLimiter,
  ledger: Ledger,
  r: number,
  s: number | null,
): Promise<void> {
  const also = s === null ? {} : { also: { s: { tpm: s } } };
  const verdict = await limiter.tryAcquire({
    entityId: "child",
    resource: "r",
    consume: { tpm: r },
    ...also,
  });
  const wanted = new Map([["r", r], ...(s === null ? [] : [["s", s] as const])]);
  const fits = [...wanted].every(
    ([resource, tokens]) => CAPACITY - ledger.charged.get(resource)! >= tokens,
  );
  expect(verdict.granted).toBe(fits);
  if (!verdict.granted) return;
  for (const [resource, tokens] of wanted) ledger.charge(resource, tokens);
  ledger.requests += 1;
  ledger.open.push({
    lease: verdict.lease,
    parts: new Map([...wanted].map(([resource, taken]) => [resource, { taken, total: taken }])),
  });
}

async function change(
  ledger: Ledger,
  kind: "consume" | "adjust" | "release" | "settle",
  index: number,
  resource: string,
  tokens: number,
): Promise<void> {
  const held = ledger.open[index % ledger.open.length];
  const part = held?.parts.get(resource);
  if (held === undefined || part === undefined) return;
  const lease = held.lease.resourceLease(resource);
  if (kind === "consume") {
    const taking = lease.consume({ tpm: tokens });
    if (CAPACITY - ledger.charged.get(resource)! < tokens)
      return expect(taking).rejects.toThrow(RateLimitExceeded);
    await taking;
    ledger.charge(resource, tokens);
    part.taken += tokens;
    part.total += tokens;
  } else if (kind === "release" && tokens > part.total)
    expect(() => lease.release({ tpm: tokens })).toThrow(ValidationError);
  else {
    lease[kind]({ tpm: tokens });
    part.total = kind === "settle" ? tokens : part.total + (kind === "adjust" ? tokens : -tokens);
  }
  expect(lease.consumed).toEqual({ tpm: part.total });
}

async function end(ledger: Ledger, index: number, kind: "commit" | "rollback"): Promise<void> {
  const held = ledger.open[index % ledger.open.length];
  if (held === undefined) return;
  await held.lease[kind]();
  for (const [resource, { taken, total }] of held.parts)
    ledger.charge(resource, kind === "commit" ? total - taken : -taken);
  if (kind === "rollback") ledger.requests -= 1;
  ledger.open = ledger.open.filter((other) => other !== held);
}

async function check(
  repository: MemoryRepository,
  limiter: RateLimiter,
  ledger: Ledger,
): Promise<void> {
  for (const [resource, charged] of ledger.charged) {
    for (const entityId of ["child", "parent"])
      expect(await limiter.available(entityId, resource)).toEqual({ tpm: CAPACITY - charged });
    const usage = await repository.getUsageSummary({ entityId: "child", resource });
    expect(usage.total["tpm"] ?? 0).toBe(charged);
    if (resource === "r") expect(usage.requests).toBe(ledger.requests);
  }
}
