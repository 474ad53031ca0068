import { describe, expect, it } from "vitest";
import { RateLimiter, RateLimiterUnavailable, type AcquireRequest } from "zae-limiter";
import type { DynamoRepository } from "zae-limiter/dynamodb";
import { onWrites, script, type Fault } from "../../support/fault-proxy.ts";
import { useProxiedTable } from "../../support/proxied-table.ts";
import { describeWithTransports, ONE_TRANSPORT_AN_ENGINE } from "../../support/transports.ts";
import { REQUEST_TIMEOUT_MS, SLOW_LIMIT, WRITE_FAULTS } from "../../support/write-path-faults.ts";

const FAULTS: readonly Fault[] = [...WRITE_FAULTS, "silence", "late-silence"];

describeWithTransports(
  "faults on the write path",
  (engine, transport) => {
    const table = useProxiedTable(engine, transport);

    const open = async (): Promise<{ limiter: RateLimiter; repository: DynamoRepository }> => {
      const patient = await table.open();
      await patient.setSystemDefaults([SLOW_LIMIT]);
      const repository = await table.open("app", { requestTimeoutMs: REQUEST_TIMEOUT_MS });
      return { limiter: new RateLimiter({ repository }), repository };
    };

    describe.each(FAULTS.map((fault) => ({ name: JSON.stringify(fault), fault })))(
      "$name",
      ({ fault }) => {
        it("a warm acquire is charged once", async () => {
          const { limiter, repository } = await open();
          await (await limiter.acquire(call(1))).commit();
          table.proxy.decide = script("UpdateItem", [fault]);
          await (await limiter.acquire(call(10))).commit();
          expect(await table.consumed(repository)).toBe(11);
        });

        it("the acquire that creates the bucket is charged once", async () => {
          const { limiter, repository } = await open();
          table.proxy.decide = script("PutItem", [fault]);
          await (await limiter.acquire(call(10))).commit();
          expect(await table.consumed(repository)).toBe(10);
        });

        it("a settlement is charged once, also over several attempts of the lease", async () => {
          const { limiter, repository } = await open();
          const lease = await limiter.acquire(call(10));
          lease.settle({ tpm: 35 });
          table.proxy.decide = script("UpdateItem", [fault, fault, fault, fault]);
          await lease.commit();
          expect(await table.consumed(repository)).toBe(35);
        });

        it("a lease gives back once, also over several attempts", async () => {
          const { limiter, repository } = await open();
          await (await limiter.acquire(call(100))).commit();
          const lease = await limiter.acquire(call(10));
          table.proxy.decide = script("UpdateItem", [fault, fault, fault, fault]);
          await lease.rollback();
          expect(await table.consumed(repository)).toBe(100);
        });

        it("what two processes do is kept apart", async () => {
          const { limiter, repository } = await open();
          const other = new RateLimiter({ repository: await table.open() });
          await (await limiter.acquire(call(1))).commit();
          await (await other.acquire(call(2))).commit();
          const lease = await limiter.acquire(call(4));
          table.proxy.decide = script("UpdateItem", [fault]);
          const [, taken] = await Promise.all([lease.rollback(), other.acquire(call(8))]);
          await taken.commit();
          expect(await table.consumed(repository)).toBe(11);
        });
      },
    );

    it.each<Fault>([
      "lost-request",
      "lost-reply",
      "throttle",
      "internal",
      "unprocessed",
      "half-unprocessed",
    ])("a cold acquire survives %s of its read [W-56]", async (fault) => {
      const { limiter, repository } = await open();
      table.proxy.decide = script("BatchGetItem", [fault]);
      await (await limiter.acquire(call(10))).commit();
      expect(await table.consumed(repository)).toBe(10);
    });

    it("a lease never gives back twice when every answer is lost, and says that the outcome is unknown", async () => {
      const { limiter, repository } = await open();
      await (await limiter.acquire(call(100))).commit();
      const lease = await limiter.acquire(call(10));
      table.proxy.decide = ({ operation }) =>
        operation === "UpdateItem" ? "lost-reply" : undefined;
      await expect(lease.rollback()).rejects.toThrow(RateLimiterUnavailable);
      expect(await table.consumed(repository)).toBe(100);
    });

    it("a call that was not granted is charged at most its own cost, and the next one gives it back", async () => {
      const { limiter, repository } = await open();
      await (await limiter.acquire(call(1))).commit();
      table.proxy.decide = ({ operation }) =>
        operation === "UpdateItem" ? "lost-reply" : undefined;
      await expect(limiter.acquire(call(10))).rejects.toThrow(RateLimiterUnavailable);
      expect(await table.consumed(repository)).toBe(11);
      table.proxy.decide = () => undefined;
      await (await limiter.acquire(call(100))).commit();
      expect(await table.consumed(repository)).toBe(101);
    });

    // The repeated request finds the late one's id in the slot only if no later operation used the
    // same id.
    it("a lost call that arrives late is not taken for the next one", async () => {
      const { limiter, repository } = await open();
      await (await limiter.acquire(call(1))).commit();
      table.proxy.decide = ({ operation }) =>
        operation === "UpdateItem" ? { delayMs: 5 * REQUEST_TIMEOUT_MS } : undefined;
      await expect(limiter.acquire(call(10))).rejects.toThrow(RateLimiterUnavailable);
      table.proxy.decide = script("UpdateItem", ["silence", "silence"]);
      await (await limiter.acquire(call(1000))).commit();
      expect(await table.consumed(repository)).toBeGreaterThanOrEqual(1001);
    });

    describe.each(["child", "parent"])("a cascade whose %s cannot be written", (side) => {
      it.each<Fault>(["throttle", "lost-request", "silence", "internal"])(
        "a call that suffers %s gives the other side back [W-44]",
        async (fault) => {
          const { limiter, repository } = await open();
          await repository.createEntity("parent");
          await repository.createEntity("child", { parentId: "parent", cascade: true });
          await (await limiter.acquire(call(1, "child"))).commit();
          table.proxy.decide = onWrites(({ PK }) => PK.S.includes(`#${side}`), fault);
          await expect(limiter.acquire(call(10, "child"))).rejects.toThrow(RateLimiterUnavailable);
          table.proxy.decide = () => undefined;
          expect(
            await Promise.all([
              table.consumed(repository, "child"),
              table.consumed(repository, "parent"),
            ]),
          ).toEqual([1, 1]);
        },
      );
    });
  },
  ONE_TRANSPORT_AN_ENGINE,
);

function call(tpm: number, entityId = "e"): AcquireRequest {
  return { entityId, resource: "r", consume: { tpm } };
}
