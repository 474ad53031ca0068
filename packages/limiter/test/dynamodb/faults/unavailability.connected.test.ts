import { expect, it } from "vitest";
import {
  Limit,
  PermissionDenied,
  RateLimiter,
  RateLimiterUnavailable,
  type Lease,
} from "zae-limiter";
import type { Fault } from "../../support/fault-proxy.ts";
import { useProxiedTable } from "../../support/proxied-table.ts";
import { describeWithTransports, ONE_TRANSPORT_AN_ENGINE } from "../../support/transports.ts";

const MAX_ATTEMPTS = 2;

describeWithTransports(
  "a table that does not answer",
  (engine, transport) => {
    const table = useProxiedTable(engine, transport);

    const open = async (): Promise<RateLimiter> => {
      const patient = await table.open();
      await patient.setSystemDefaults([Limit.perMinute("rpm", 1000)]);
      // The buckets of both are written by one request.
      await patient.createEntity("parent");
      await patient.createEntity("e", { parentId: "parent", cascade: true });
      return new RateLimiter({
        repository: await table.open("app", { requestTimeoutMs: 1000, maxAttempts: MAX_ATTEMPTS }),
      });
    };

    for (const warmth of ["cold", "warm"] as const) {
      it.each<Fault>(["silence", "throttle", "internal", "lost-request"])(
        `a ${warmth} process honours onUnavailable within its attempts, and needs no restart: %s`,
        async (fault) => {
          const limiter = await open();
          if (warmth === "warm") await (await acquire(limiter, "block")).commit();
          for (const onUnavailable of ["allow", "block"] as const) {
            table.proxy.decide = () => fault;
            const before = table.proxy.seen.length;
            if (onUnavailable === "allow") {
              const lease = await acquire(limiter, "allow");
              expect(lease.degraded).toBe(true);
              await lease.commit();
            } else await expect(acquire(limiter, "block")).rejects.toThrow(RateLimiterUnavailable);
            // A bucket that is throttled is read once more: it may have other shards.
            const sent = table.proxy.seen.slice(before).map(({ operation }) => operation);
            const count = (operation: string): number =>
              sent.filter((other) => other === operation).length;
            for (const operation of ["BatchGetItem", "PutItem", "UpdateItem"])
              expect(count(operation)).toBeLessThanOrEqual(2 * MAX_ATTEMPTS);
            expect(count("BatchExecuteStatement")).toBeLessThanOrEqual(1);
          }
          table.proxy.decide = () => undefined;
          const lease = await acquire(limiter, "block");
          expect(lease.degraded).toBe(false);
          await lease.commit();
        },
      );
    }

    it.each(["cold", "warm"])(
      "a %s process never takes a table that denies permission for one that is away",
      async (warmth) => {
        const limiter = await open();
        if (warmth === "warm") await (await acquire(limiter, "block")).commit();
        table.proxy.decide = () => "denied";
        await expect(acquire(limiter, "allow")).rejects.toThrow(PermissionDenied);
      },
    );
  },
  ONE_TRANSPORT_AN_ENGINE,
);

async function acquire(limiter: RateLimiter, onUnavailable: "allow" | "block"): Promise<Lease> {
  return limiter.acquire({ entityId: "e", resource: "r", consume: { rpm: 1 }, onUnavailable });
}
