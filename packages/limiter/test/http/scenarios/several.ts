import { describe, expect, it } from "vitest";
import { open, send, until } from "../client.ts";
import type { ServerAdapter } from "../servers/server-adapter.ts";
import { byKey, Gate, nextTurns, Setting } from "./setting.ts";
import { collectWarnings } from "./warnings.ts";

/** Waiting, several middlewares, refusals inside handlers, and misuse. */
export function severalScenarios(adapter: ServerAdapter): void {
  describe("waiting", () => {
    it("waits until the request fits", async () => {
      const setting = await Setting.create(adapter);
      const server = await setting.serve([{ consume: { rpm: 3 }, waitUpToMs: 120_000 }]);
      expect((await send(byKey(server))).status).toBe(200);
      const waiting = send(byKey(server));
      await until(() => setting.clock.sleeping > 0);
      await setting.clock.advance(60_000);
      expect((await waiting).status).toBe(200);
      expect(await setting.left()).toBe(0);
    });

    it("leaves the queue when the client goes away, and charges nothing", async () => {
      const setting = await Setting.create(adapter);
      let runs = 0;
      const server = await setting.serve([{ consume: { rpm: 3 }, waitUpToMs: 120_000 }], () => ({
        body: String((runs += 1)),
      }));
      await send(byKey(server));
      const client = open(byKey(server)).on("error", () => {});
      await until(() => setting.clock.sleeping > 0);
      client.destroy();
      await until(() => setting.clock.sleeping === 0);
      await setting.clock.advance(60_000);
      expect(await setting.left()).toBe(3);
      expect([runs, server.errors]).toEqual([1, []]);
    });

    it("gives everything back for a client that left meanwhile", async () => {
      const setting = await Setting.create(adapter);
      let runs = 0;
      const [asked, release] = [new Gate(), new Gate()];
      const server = await setting.serve(
        [
          {
            consume: async () => {
              asked.open();
              await release.opened;
              return { rpm: 1 };
            },
          },
        ],
        (call) => {
          if (call.lease() !== undefined) runs += 1;
          return {};
        },
      );
      const client = open(byKey(server)).on("error", () => {});
      await asked.opened;
      const gone = new Promise((resolve) => client.on("close", resolve));
      client.destroy();
      await gone;
      // The server notices this before it gets connections that were opened later.
      for (let sent = 0; sent < 3; sent += 1) await send({ port: server.port });
      release.open();
      await until(() => setting.operations.includes("consume"));
      await nextTurns();
      expect([await setting.left(), runs]).toEqual([3, 0]);
    });
  });

  describe("several middlewares", () => {
    it("lists the balances of both, even if they are equal", async () => {
      const setting = await Setting.create(adapter);
      const server = await setting.serve([{}, { resource: "search" }]);
      const { headers } = await send(byKey(server));
      const both = '"rpm";r=2;t=20, "tpm";r=100, "rpm";r=2;t=20, "tpm";r=100';
      expect(headers["ratelimit"]).toBe(both);
      const policies = '"rpm";q=3;w=60, "tpm";q=100;w=60';
      expect(headers["ratelimit-policy"]).toBe(`${policies}, ${policies}`);
    });

    it("limits by all of them, lists all policies, and returns the innermost lease", async () => {
      const warnings = collectWarnings();
      const setting = await Setting.create(adapter);
      const server = await setting.serve(
        [
          { resource: "site", headers: { style: ["ietf", "legacy"] } },
          { consume: { rpm: 2 }, headers: { style: ["ietf", "legacy"] } },
        ],
        (call) => ({ body: `${call.lease()?.resource}` }),
      );
      const reply = await send(byKey(server));
      expect([reply.status, reply.body]).toEqual([200, "chat"]);
      expect(String(reply.headers["ratelimit"]).match(/"rpm";r=\d/g)).toEqual([
        '"rpm";r=2',
        '"rpm";r=1',
      ]);
      expect(reply.headers["x-ratelimit-remaining"]).toBe("1");
      const refused = await send(byKey(server));
      expect(refused.status).toBe(429);
      expect(refused.headers["retry-after"]).toBe("20");
      expect([await setting.left("rpm", "key-1", "site"), await setting.left()]).toEqual([1, 1]);
      expect(warnings).toEqual([]);
    });

    it("warns once if two of one limiter take from the same bucket", async () => {
      const warnings = collectWarnings();
      const setting = await Setting.create(adapter);
      const server = await setting.serve([{}, {}]);
      await send(byKey(server));
      await send(byKey(server));
      await until(() => warnings.length > 0);
      expect(warnings.map(({ code }) => code)).toEqual(["WARN_LIMITER_LIMITED_TWICE"]);
      expect(warnings[0]!.message).not.toContain("key-1");
    });
  });

  describe("misuse", () => {
    it("warns once of a secret as an id, and does not repeat it", async () => {
      const secret = "sk-proj-abcdefghijklmnopqrstuvwx";
      const warnings = collectWarnings();
      const setting = await Setting.create(adapter);
      const server = await setting.serve([{}]);
      for (const key of [secret, "team-1", secret])
        expect((await send(byKey(server, { headers: { "x-key": key } }))).status).toBe(200);
      await until(() => warnings.length > 0);
      expect(warnings.map(({ code }) => code)).toEqual(["WARN_LIMITER_SECRET_AS_ID"]);
      expect(warnings[0]!.message).not.toContain(secret);
    });
  });

  if (adapter.startAnsweringRefusals === undefined) return;
  describe("answerRefusals", () => {
    it("answers what handlers throw: 429, 503, and nothing else", async () => {
      const setting = await Setting.create(adapter);
      const request = { entityId: "key-1", resource: "chat", consume: { rpm: 3 } };
      const server = await adapter.startAnsweringRefusals!(async ({ path }) => {
        if (path === "/bug") throw new TypeError("a bug");
        await setting.limiter.acquire(request, () => {});
        return { body: "hello" };
      });
      try {
        expect((await send(byKey(server))).body).toBe("hello");
        const refused = await send(byKey(server));
        expect(refused.status).toBe(429);
        expect(refused.headers).toMatchObject({
          "retry-after": "60",
          "cache-control": "no-store",
          "content-type": "application/problem+json",
        });
        expect(refused.headers["ratelimit"]).toContain('"rpm";r=0;t=60');
        setting.faults.set("consume", "error-before");
        const unavailable = await send(byKey(server));
        expect([unavailable.status, unavailable.headers["retry-after"]]).toEqual([503, "1"]);
        expect((await send(byKey(server, { path: "/bug" }))).status).toBe(500);
        expect(server.errors).toHaveLength(1);
      } finally {
        await server.close();
      }
    });
  });
}
