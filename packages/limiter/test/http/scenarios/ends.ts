import { Agent } from "node:http";
import { once } from "node:events";
import { describe, expect, it, onTestFinished } from "vitest";
import type { Lease } from "zae-limiter";
import { giveBackFailures } from "zae-limiter/http";
import { open, send, until } from "../client.ts";
import type { ServerAdapter } from "../servers/server-adapter.ts";
import { byKey, Gate, HeldBody, nextTurns, Setting, type Ended } from "./setting.ts";
import { collectUnhandled, collectWarnings } from "./warnings.ts";

/** How requests end, and what they cost then. */
export function endScenarios(adapter: ServerAdapter): void {
  describe("the end of a request", () => {
    it("keeps the charge, also if the handler failed", async () => {
      const setting = await Setting.create(adapter);
      const server = await setting.serve([{}], () => {
        throw new Error("handler failed");
      });
      expect((await send(byKey(server))).status).toBe(500);
      expect(await setting.left()).toBe(2);
      expect(server.errors).toHaveLength(1);
    });

    it("settles by the final response, once for each request", async () => {
      const setting = await Setting.create(adapter);
      const ended: Ended[] = [];
      const server = await setting.serve(
        [
          {
            consume: { rpm: 1, tpm: 10 },
            settle: async ({ request, status, completed }) => {
              ended.push({ status, completed });
              if (request.path === "/cost") return { tpm: 25 };
              return giveBackFailures({ status });
            },
          },
        ],
        ({ path }) => {
          if (path === "/throw") throw new Error("handler failed");
          return { status: path === "/missing" ? 404 : 200, body: "answer" };
        },
      );
      await send(byKey(server, { path: "/cost" }));
      await expect.poll(() => setting.left("tpm")).toBe(75);
      await send(byKey(server, { path: "/missing" }));
      await send(byKey(server, { path: "/throw" }));
      await until(() => ended.length === 3);
      await expect.poll(() => setting.left("tpm")).toBe(75);
      expect(await setting.left()).toBe(2);
      expect(ended).toEqual([
        { status: 200, completed: true },
        { status: 404, completed: true },
        { status: 500, completed: true },
      ]);
    });

    it("settles the totals that the handler sets", async () => {
      const setting = await Setting.create(adapter);
      const server = await setting.serve([{ consume: { rpm: 1, tpm: 10 } }], (call) => {
        call.lease()?.settle({ tpm: 40 });
        return { body: "done" };
      });
      await send(byKey(server));
      await expect.poll(() => setting.left("tpm")).toBe(60);
    });

    it("lets the handler end the lease, and ignores what settle returns afterwards", async () => {
      const warnings = collectWarnings();
      const setting = await Setting.create(adapter);
      let settled = 0;
      const server = await setting.serve(
        [
          {
            consume: { rpm: 1, tpm: 10 },
            settle: () => {
              settled += 1;
              return settled === 1 ? { tpm: 99 } : "give-back";
            },
          },
        ],
        async (call) => {
          await call.lease()?.commit();
          return { body: "done" };
        },
      );
      for (const times of [1, 2]) {
        await send(byKey(server));
        await until(() => settled === times);
      }
      expect([await setting.left(), await setting.left("tpm")]).toEqual([1, 80]);
      await nextTurns();
      expect(warnings).toEqual([]);
    });

    const failures = {
      throws: () => {
        throw new Error("settle failed");
      },
      rejects: () => Promise.reject(new Error("settle failed")),
      "names no limit": () => ({ tokens: 1 }),
      "returns an invalid total": () => ({ tpm: Number.NaN }),
    };
    it.each(Object.entries(failures))(
      "keeps the charge if settle %s, and warns once",
      async (_, settle) => {
        const warnings = collectWarnings();
        const unhandled = collectUnhandled();
        const setting = await Setting.create(adapter);
        const server = await setting.serve([{ settle }]);
        await send(byKey(server));
        await send(byKey(server));
        await until(() => warnings.length > 0);
        await nextTurns();
        expect(warnings.map(({ code }) => code)).toEqual(["WARN_LIMITER_SETTLE_FAILED"]);
        expect(await setting.left()).toBe(1);
        expect(unhandled).toEqual([]);
      },
    );

    it("reports ends that cannot be written, and warns of callbacks that fail as well", async () => {
      const warnings = collectWarnings();
      const unhandled = collectUnhandled();
      const failed: Lease[] = [];
      const setting = await Setting.create(adapter, {
        onSettlementFailed: (_error, lease) => {
          failed.push(lease);
          throw new Error("the report failed");
        },
      });
      setting.faults.set("settle", "error-before").set("giveBack", "error-before");
      const waited: Promise<void>[] = [];
      const server = await setting.serve([
        {
          settle: ({ request }) => (request.path === "/back" ? "give-back" : { rpm: 2 }),
          waitUntil: (settled) => {
            waited.push(settled);
            const failure = new Error("waitUntil failed");
            if (waited.length === 1) throw failure;
            return Promise.reject(failure) as never;
          },
        },
      ]);
      expect((await send(byKey(server))).status).toBe(200);
      expect((await send(byKey(server, { path: "/back" }))).status).toBe(200);
      await until(() => failed.length === 2 && waited.length === 2);
      await Promise.all(waited);
      await nextTurns();
      expect(warnings.map(({ code }) => code)).toEqual(["WARN_LIMITER_SETTLE_FAILED"]);
      expect(unhandled).toEqual([]);
    });

    it("settles a stream when its last piece was sent", async () => {
      const setting = await Setting.create(adapter);
      const ended: Ended[] = [];
      const body = new HeldBody();
      const server = await setting.serve(
        [
          {
            settle: ({ status, completed }) => {
              ended.push({ status, completed });
              return "give-back";
            },
          },
        ],
        () => ({ body }),
      );
      const [response] = await once(open(byKey(server)), "response");
      body.send("one ");
      expect(String((await once(response, "data"))[0])).toBe("one ");
      expect(ended).toEqual([]);
      expect(await setting.left()).toBe(2);
      body.send("two");
      body.end();
      await once(response.resume(), "end");
      await until(() => ended.length > 0);
      expect(ended).toEqual([{ status: 200, completed: true }]);
      await expect.poll(() => setting.left()).toBe(3);
    });

    it.each(["before the first byte", "in the middle of the response"])(
      "settles once when the client goes away %s",
      async (when) => {
        const setting = await Setting.create(adapter);
        const ended: boolean[] = [];
        const body = new HeldBody();
        const [begun, answer] = [new Gate(), new Gate()];
        const isEarly = when === "before the first byte";
        const server = await setting.serve(
          [{ settle: ({ completed }) => void ended.push(completed) }],
          async () => {
            begun.open();
            if (isEarly) await answer.opened;
            return { body };
          },
        );
        const client = open(byKey(server)).on("error", () => {});
        await begun.opened;
        if (!isEarly) {
          const [response] = await once(client, "response");
          body.send("one ");
          await once(response, "data");
          response.on("error", () => {});
        }
        client.destroy();
        await until(() => ended.length > 0);
        answer.open();
        body.send("two");
        body.end();
        await nextTurns();
        expect(ended).toEqual([false]);
        expect(await setting.left()).toBe(2);
      },
    );

    it("leaves no listener on a connection that many requests share", async () => {
      const warnings = collectWarnings();
      const setting = await Setting.create(adapter);
      const server = await setting.serve([{ waitUpToMs: 1000, settle: () => "give-back" }]);
      const agent = new Agent({ keepAlive: true, maxSockets: 1 });
      onTestFinished(() => agent.destroy());
      for (let sent = 0; sent < 50; sent += 1)
        expect((await send(byKey(server, { agent }))).status).toBe(200);
      await nextTurns();
      expect(warnings).toEqual([]);
      await expect.poll(() => setting.left()).toBe(3);
    });
  });
}
