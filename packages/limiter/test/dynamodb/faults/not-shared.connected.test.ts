/*
 * What answers is not a DynamoDB that carries out batches of statements: an older engine, a proxy
 * that knows only some operations, a policy that does not allow them. Calls must not notice.
 */
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { Limit, RateLimiter } from "zae-limiter";
import { DynamoRepository, type DynamoOptions } from "zae-limiter/dynamodb";
import { take } from "../../support/calls.ts";
import { freshTableName } from "../../support/engine.ts";
import {
  fail,
  ok,
  startProxyServer,
  type Answer,
  type Course,
  type ProxyServer,
} from "../../support/proxy-server.ts";
import {
  describeWithTransports,
  ONE_TRANSPORT_AN_ENGINE,
  openTransport,
} from "../../support/transports.ts";

const SHARED = "BatchExecuteStatement";

type Handling = (course: Course, statements: readonly unknown[]) => Promise<Answer>;

/** An error in the place of each statement. */
const eachStatement =
  (Code: string): Handling =>
  async (_, statements) =>
    ok({ Responses: statements.map(() => ({ Error: { Code, Message: "said" } })) });

/** A page of a server that knows nothing of DynamoDB. */
const page = (status: number): Answer => ({
  status,
  headers: { "content-type": "text/html" },
  body: `<html><body><h1>${status}</h1></body></html>`,
});

describeWithTransports(
  "a table whose requests cannot be shared",
  (engine, transportName) => {
    const warned = vi.fn<(message: string | Error, options: unknown) => void>();
    let handle: Handling;
    let sent: string[];
    let proxy: ProxyServer;
    let close: () => Promise<void>;

    beforeEach(async () => {
      sent = [];
      warned.mockReset();
      vi.spyOn(process, "emitWarning").mockImplementation(warned);
      proxy = await startProxyServer(engine().endpointUrl, async ({ operation, input }, course) => {
        sent.push(operation);
        course.reply(
          operation === SHARED
            ? await handle(course, input["Statements"] as readonly unknown[])
            : await course.forward(),
        );
      });
    });
    afterEach(async () => {
      vi.restoreAllMocks();
      await close();
      await proxy.stop();
    });

    async function open(options: DynamoOptions = {}): Promise<RateLimiter> {
      const transport = await openTransport(transportName, proxy);
      const repository = await DynamoRepository.open("app", {
        stack: freshTableName(),
        transport,
        provisioning: "table",
        stream: false,
        requestTimeoutMs: 10_000,
        ...options,
      });
      close = async () => {
        await repository.close();
        transport.close();
      };
      await repository.setSystemDefaults([Limit.perDay("rpm", 1000)]);
      return new RateLimiter({ repository });
    }

    /** Takes one token of each of so many buckets, at once; returns what was sent. */
    async function takeAll(limiter: RateLimiter, count = 4): Promise<readonly string[]> {
      const before = sent.length;
      await Promise.all(
        Array.from({ length: count }, (_, index) => take(limiter, { rpm: 1 }, `e-${index}`)),
      );
      return sent.slice(before);
    }

    it.each<[string, Handling, count?: number]>([
      ["does not know the operation", async () => fail(400, "UnknownOperationException", {})],
      [
        "denies the request",
        async () => fail(400, "com.amazon.coral.service#AccessDeniedException", { Message: "no" }),
      ],
      ["denies each statement", eachStatement("AccessDenied")],
      ["understands none of 50 statements", eachStatement("ValidationError"), 50],
      ["says 404", async () => page(404)],
      ["says 405", async () => page(405)],
      ["says 501", async () => page(501)],
      [
        "carries it out and says 501",
        async (course) => {
          await course.forward();
          return page(501);
        },
      ],
    ])(
      "that %s is found out once, and every call is charged once",
      async (_, handling, count = 4) => {
        handle = handling;
        const limiter = await open();
        expect(await takeAll(limiter, count)).not.toContain(SHARED);
        expect(await takeAll(limiter, count)).toContain(SHARED);
        expect(new Set(await takeAll(limiter, count))).toEqual(new Set(["UpdateItem"]));
        expect(warned.mock.calls).toEqual([
          [
            expect.stringMatching(/^Calls on different buckets cannot share requests to table /),
            { code: "WARN_LIMITER_REQUESTS_NOT_SHARED" },
          ],
        ]);
        for (const entity of ["e-0", "e-1", "e-2", "e-3"])
          expect(await limiter.available(entity, "r")).toMatchObject({ rpm: 997 });
      },
    );

    it("is never asked when sharing is switched off", async () => {
      handle = async () => expect.fail("it was asked");
      const limiter = await open({ shareRequests: false });
      await takeAll(limiter);
      expect(new Set(await takeAll(limiter))).toEqual(new Set(["UpdateItem"]));
      expect(warned.mock.calls).toEqual([]);
    });
  },
  ONE_TRANSPORT_AN_ENGINE,
);
