import { runInNewContext } from "node:vm";
import { describe, expect, it } from "vitest";
import { RateLimiterUnavailable, ValidationError } from "zae-limiter";
import { send } from "../client.ts";
import type { ServerAdapter } from "../servers/server-adapter.ts";
import { byKey, nextTurns, Setting } from "./setting.ts";
import { collectUnhandled } from "./warnings.ts";

/** The outcomes of a request: granted, refused, unavailable, not limited, failed. */
export function verdictScenarios(adapter: ServerAdapter): void {
  describe("the verdict on a request", () => {
    it("grants a request, runs its handler, and shows the balances in headers", async () => {
      const setting = await Setting.create(adapter);
      const server = await setting.serve([{}], (call) => ({
        status: 201,
        body: String(call.lease()?.consumed["rpm"]),
      }));
      const reply = await send(byKey(server));
      expect([reply.status, reply.body]).toEqual([201, "1"]);
      expect(reply.headers["ratelimit"]).toContain('"rpm";r=2');
      expect(reply.headers["ratelimit-policy"]).toContain('"rpm";q=3;w=60');
      expect(reply.headers).not.toHaveProperty("retry-after");
      expect(await setting.left()).toBe(2);
    });

    it("sends no headers if they are switched off", async () => {
      const setting = await Setting.create(adapter);
      const server = await setting.serve([{ headers: false }]);
      expect((await send(byKey(server))).headers).not.toHaveProperty("ratelimit");
    });

    it("refuses with 429, a problem and Retry-After, and does not run the handler", async () => {
      const setting = await Setting.create(adapter);
      let runs = 0;
      const refused: string[] = [];
      const server = await setting.serve(
        [
          {
            onRefused: (refusal, call) => refused.push(`${call.path} ${refusal.retryAfterSeconds}`),
          },
        ],
        () => ({ body: String((runs += 1)) }),
      );
      for (let sent = 0; sent < 3; sent += 1) expect((await send(byKey(server))).status).toBe(200);
      const reply = await send(byKey(server, { path: "/4" }));
      expect(reply.status).toBe(429);
      expect(reply.headers).toMatchObject({
        "retry-after": "20",
        "cache-control": "no-store",
        "content-type": "application/problem+json",
      });
      expect(reply.headers["ratelimit"]).toContain('"rpm";r=0;t=20');
      expect(JSON.parse(reply.body)).toMatchObject({
        type: "https://iana.org/assignments/http-problem-types#quota-exceeded",
        status: 429,
        "violated-policies": ["rpm"],
        retry_after_ms: 20_000,
      });
      expect(reply.body).not.toContain("key-1");
      expect([runs, refused]).toEqual([3, ["/4 20"]]);
      await setting.clock.advance(20_000);
      expect((await send(byKey(server))).status).toBe(200);
    });

    it("sends Retry-After and no other field if headers are switched off", async () => {
      const setting = await Setting.create(adapter);
      const server = await setting.serve([{ headers: false, consume: { rpm: 3 } }]);
      await send(byKey(server));
      const reply = await send(byKey(server));
      expect(reply.headers["retry-after"]).toBe("60");
      expect(reply.headers).not.toHaveProperty("ratelimit");
    });

    it("tells a client not to retry what can never fit", async () => {
      const setting = await Setting.create(adapter);
      const server = await setting.serve([{ consume: { rpm: 4 } }]);
      const reply = await send(byKey(server));
      expect([reply.status, reply.headers["x-should-retry"]]).toEqual([429, "false"]);
      expect(reply.headers).not.toHaveProperty("retry-after");
      expect(JSON.parse(reply.body)).toMatchObject({ retry_after_ms: null });
    });

    it("lets the application answer refusals", async () => {
      const setting = await Setting.create(adapter);
      const server = await setting.serve([
        {
          consume: { rpm: 3 },
          respondWith: ({ retryAfterSeconds }) => `in ${retryAfterSeconds} s`,
        },
      ]);
      expect((await send(byKey(server))).body).toBe("hello");
      const reply = await send(byKey(server));
      expect([reply.status, reply.body]).toEqual([429, "in 60 s"]);
      expect(reply.headers["retry-after"]).toBe("60");
      expect(reply.headers["content-type"] ?? "").not.toContain("problem");
    });

    it("does not limit a request without an entity", async () => {
      const setting = await Setting.create(adapter);
      const server = await setting.serve([{}], (call) => ({ body: typeof call.lease() }));
      for (let sent = 0; sent < 5; sent += 1) {
        const reply = await send({ port: server.port });
        expect([reply.status, reply.body]).toEqual([200, "undefined"]);
        expect(reply.headers).not.toHaveProperty("ratelimit");
      }
    });

    it("answers 503 while the store is unavailable, and once the limiter is closed", async () => {
      const setting = await Setting.create(adapter);
      let runs = 0;
      const server = await setting.serve([{}], () => ({ body: String((runs += 1)) }));
      setting.faults.set("consume", "error-before");
      const reply = await send(byKey(server));
      expect(reply.status).toBe(503);
      expect(reply.headers).toMatchObject({
        "retry-after": "1",
        "cache-control": "no-store",
        "content-type": "application/problem+json",
      });
      expect(JSON.parse(reply.body)).toMatchObject({
        type: "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity",
        status: 503,
      });
      setting.faults.clear();
      await setting.limiter.close();
      expect((await send(byKey(server))).status).toBe(503);
      expect([runs, server.errors]).toEqual([0, []]);
    });

    it("lets requests through without headers if onUnavailable allows it", async () => {
      const setting = await Setting.create(adapter);
      const server = await setting.serve([{ onUnavailable: "allow" }], (call) => ({
        body: String(call.lease()?.degraded),
      }));
      setting.faults.set("consume", "error-before");
      const reply = await send(byKey(server));
      expect([reply.status, reply.body]).toEqual([200, "true"]);
      expect(reply.headers).not.toHaveProperty("ratelimit");
    });

    it("runs the handler without headers if the balances are unknown", async () => {
      const setting = await Setting.create(adapter);
      // Faults do not apply to `remembered`, because in memory it sends no request.
      setting.repository.remembered = () => {
        throw new RateLimiterUnavailable("no answer");
      };
      const server = await setting.serve([{ settle: () => "give-back" }]);
      const reply = await send(byKey(server));
      expect(reply.status).toBe(200);
      expect(reply.headers).not.toHaveProperty("ratelimit");
      await expect.poll(() => setting.left()).toBe(3);
    });

    it("does not ask to retry a request that was granted, and hides its parent", async () => {
      const setting = await Setting.create(adapter);
      const { repository } = setting;
      await repository.createEntity("team");
      await repository.createEntity("key-1", { parentId: "team", cascade: true });
      const remembered = repository.remembered.bind(repository);
      // Another call brought the limit into debt between the grant and the read.
      const debt = { available: -1, exceeded: true, retryAfterSeconds: 5 };
      repository.remembered = async (receipt) =>
        (await remembered(receipt)).map((status) => Object.assign({}, status, debt));
      const server = await setting.serve([{}]);
      const reply = await send(byKey(server));
      expect(reply.headers["ratelimit"]).toContain('"rpm";r=0');
      expect(reply.headers["ratelimit"]).not.toContain("parent");
      expect(reply.headers).not.toHaveProperty("retry-after");
    });

    it("gives everything back if the headers cannot be made", async () => {
      const setting = await Setting.create(adapter);
      setting.repository.remembered = () => {
        throw new TypeError("a bug");
      };
      const server = await setting.serve([{}]);
      expect((await send(byKey(server))).status).toBe(500);
      await expect.poll(() => setting.left()).toBe(3);
    });

    it("takes from further resources, all of them or none", async () => {
      const setting = await Setting.create(adapter);
      const server = await setting.serve([
        {
          resource: () => "chat",
          consume: async () => ({ rpm: 1 }),
          also: () => ({ search: { rpm: 2 } }),
        },
      ]);
      expect((await send(byKey(server))).status).toBe(200);
      expect((await send(byKey(server))).status).toBe(429);
      expect([await setting.left(), await setting.left("rpm", "key-1", "search")]).toEqual([2, 1]);
    });

    it("awaits promises of another realm", async () => {
      const setting = await Setting.create(adapter);
      const later = runInNewContext("(value) => Promise.resolve(value)") as typeof Promise.resolve;
      const server = await setting.serve([
        {
          entity: () => later("key-1"),
          resource: () => later("chat"),
          consume: () => later({ rpm: 2 }),
          also: () => later(undefined),
        },
      ]);
      expect((await send(byKey(server))).headers["ratelimit"]).toContain('"rpm";r=1');
    });

    const mistakes = {
      "an invalid id": { entity: () => "#" },
      "no id, as null": { entity: () => null as unknown as undefined },
      "an invalid resource": { resource: () => "no resource" },
      "a limit that does not exist": { consume: { rps: 1 } },
      "an amount that is not a number": { consume: () => ({ rpm: Number.NaN }) },
      "a negative amount": { consume: () => ({ rpm: -1 }) },
      "a fraction": { consume: () => ({ rpm: 0.5 }) },
      "the same resource twice": { also: () => ({ chat: { rpm: 1 } }) },
    };
    it.each(Object.entries(mistakes))(
      "fails as the application's mistake: %s",
      async (_, mistake) => {
        const setting = await Setting.create(adapter);
        const server = await setting.serve([mistake]);
        const reply = await send(byKey(server));
        expect(reply.status).toBe(500);
        expect(reply.headers).not.toHaveProperty("retry-after");
        expect(server.errors).toHaveLength(1);
        expect(server.errors[0]).toBeInstanceOf(ValidationError);
        expect(await setting.left()).toBe(3);
      },
    );

    it.each(["entity", "resource", "consume", "also", "onRefused"])(
      "fails as the application's mistake: %s throws or rejects",
      async (name) => {
        const unhandled = collectUnhandled();
        const setting = await Setting.create(adapter);
        const thrown = new Error(`${name} failed`);
        const consume = name === "onRefused" ? { consume: { rpm: 4 } } : {};
        const throwing = await setting.serve([
          {
            ...consume,
            [name]: () => {
              throw thrown;
            },
          },
        ]);
        expect((await send(byKey(throwing))).status).toBe(500);
        expect(throwing.errors).toEqual([thrown]);
        const rejecting = await setting.serve([
          { ...consume, [name]: () => Promise.reject(thrown) },
        ]);
        expect((await send(byKey(rejecting))).status).toBe(500);
        expect(rejecting.errors).toEqual([thrown]);
        await nextTurns();
        expect(unhandled).toEqual([]);
      },
    );

    it("fails as the application's mistake: no limits at all", async () => {
      const setting = await Setting.create(adapter);
      await setting.repository.deleteSystemDefaults();
      const server = await setting.serve([{}]);
      expect((await send(byKey(server))).status).toBe(500);
      expect(server.errors[0]).toBeInstanceOf(ValidationError);
    });
  });
}
