import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { constants } from "node:http2";
import { describe, expect, it } from "vitest";
import { limitListener } from "zae-limiter/http";
import { listeningOn } from "../support/listening.ts";
import { until } from "./client.ts";
import { Http2Client } from "./http2-client.ts";
import { Gate, HeldBody, nextTurns, Setting } from "./scenarios/setting.ts";
import { collectWarnings } from "./scenarios/warnings.ts";
import { fastifyOver } from "./servers/fastify.ts";
import { listenerOver } from "./servers/listener.ts";
import type { CallOptions, Handler, ServerAdapter } from "./servers/server-adapter.ts";
import { http2Transports } from "./servers/transport.ts";
import { honoBodyOver, honoOver, nodeHandlerOver, webHandlerOver } from "./servers/web.ts";
import { tenRequests } from "./ten-requests.ts";

const headers = { "x-key": "key-1" };
const { NGHTTP2_CANCEL, NGHTTP2_NO_ERROR } = constants;

describe.each(http2Transports)("over $name", (transport) => {
  /** Adapters that see Node's response. Express has no HTTP/2. */
  const onNode = [listenerOver, fastifyOver, honoOver, nodeHandlerOver].map((over) =>
    over(transport),
  );
  const onWeb = [honoBodyOver, webHandlerOver].map((over) => over(transport));

  describe.each([...onNode, ...onWeb])("$name", (adapter) => {
    it.each(["GET", "HEAD", "POST"])("limits, answers and settles %s", async (method) => {
      const { setting, ended, client } = await settling(
        adapter,
        async (call) => ({ body: method === "POST" ? await call.body() : "hello" }),
        { consume: { rpm: 2 } },
      );
      const sent = { method, headers, ...(method === "POST" && { body: "hello" }) };
      const reply = await client.send(sent);
      expect([reply.status, reply.body]).toEqual([200, method === "HEAD" ? "" : "hello"]);
      expect(reply.headers["ratelimit"]).toContain('"rpm";r=1');
      const refused = await client.send(sent);
      expect([refused.status, refused.headers["retry-after"]]).toEqual([429, "20"]);
      await until(() => ended.length > 0);
      await nextTurns();
      expect(ended).toEqual([{ status: 200, completed: true }]);
      expect(await setting.left()).toBe(1);
    });

    it("runs the handler of a HEAD that had to wait", async () => {
      const { setting, ended, client } = await settling(adapter, undefined, {
        consume: { rpm: 3 },
        waitUpToMs: 60_000,
      });
      expect((await client.send({ method: "HEAD", headers })).status).toBe(200);
      const reply = client.send({ method: "HEAD", headers });
      await until(() => setting.clock.sleeping === 1);
      await setting.clock.advance(60_000);
      expect((await reply).status).toBe(200);
      await until(() => ended.length === 2);
    });

    it("settles a stream when its last piece was sent", async () => {
      const body = new HeldBody();
      const { ended, client } = await settling(adapter, () => ({ body }));
      const stream = client.open({ headers });
      body.send("one ");
      expect(String((await once(stream, "data"))[0])).toBe("one ");
      await nextTurns();
      expect(ended).toEqual([]);
      body.end();
      await once(stream.resume(), "end");
      await until(() => ended.length > 0);
      expect(ended).toEqual([{ status: 200, completed: true }]);
    });

    it("settles a HEAD whose handler answers with a stream", async () => {
      const body = new HeldBody();
      body.send("one ");
      body.send("two");
      body.end();
      const { ended, client } = await settling(adapter, () => ({ body }));
      expect((await client.send({ method: "HEAD", headers })).status).toBe(200);
      await until(() => ended.length > 0);
      expect(ended).toEqual([{ status: 200, completed: true }]);
    });

    it("settles many requests on one connection", async () => {
      const warnings = collectWarnings();
      const { setting, ended, client } = await settling(adapter, undefined, {
        consume: { tpm: 1 },
        waitUpToMs: 1000,
      });
      const methods = Array.from({ length: 60 }, (_, index) => (index % 3 ? "GET" : "HEAD"));
      const replies = await Promise.all(methods.map((method) => client.send({ method, headers })));
      expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([200]));
      await until(() => ended.length === methods.length);
      expect(ended.every(({ completed }) => completed)).toBe(true);
      expect(await setting.left("tpm")).toBe(40);
      expect(warnings).toEqual([]);
    });

    it.each([
      ["resets the stream", "CANCEL"],
      ["closes the stream", "NO_ERROR"],
      ["closes the connection", undefined],
    ])("settles once when the client %s in the middle of a response", async (_, code) => {
      const body = new HeldBody();
      const { setting, ended, client } = await settling(adapter, () => ({ body }));
      const stream = client.open({ headers });
      body.send("one ");
      await once(stream, "data");
      leave(client, stream, code);
      await until(() => ended.length > 0);
      body.send("two");
      body.end();
      await nextTurns();
      expect(ended).toEqual([{ status: 200, completed: false }]);
      expect(await setting.left()).toBe(2);
    });

    it.each(["a stream", "the connection"])(
      "settles once when the server resets %s in the middle of a response",
      async (what) => {
        const body = new HeldBody();
        const { ended, client, server } = await settling(adapter, () => ({ body }));
        const stream = client.open({ headers });
        body.send("one ");
        await once(stream, "data");
        const opened = server.http2Streams.at(-1)!;
        if (what === "a stream") opened.close(constants.NGHTTP2_INTERNAL_ERROR);
        else opened.session!.destroy();
        await until(() => ended.length > 0);
        body.end();
        await nextTurns();
        expect(ended).toEqual([{ status: 200, completed: false }]);
      },
    );
  });

  describe.each(onNode)("$name", (adapter) => {
    it.each(
      ["GET", "HEAD", "POST"].flatMap((method) => [
        [method, "CANCEL"],
        [method, "NO_ERROR"],
        [method, undefined],
      ]),
    )("settles a %s once if it is reset before the first byte (%s)", async (method, code) => {
      const [begun, answer] = [new Gate(), new Gate()];
      const { setting, ended, client } = await settling(adapter, async () => {
        begun.open();
        await answer.opened;
        return { body: "late" };
      });
      const stream = client.open({
        method,
        headers,
        ...(method === "POST" && { body: "" }),
      });
      await begun.opened;
      leave(client, stream, code);
      await until(() => ended.length > 0);
      answer.open();
      await nextTurns();
      expect(ended).toEqual([{ status: 200, completed: false }]);
      expect(await setting.left()).toBe(2);
    });

    it.each(["GET", "HEAD"])(
      "removes a %s from the queue when its client leaves",
      async (method) => {
        let runs = 0;
        const { setting, client } = await settling(adapter, () => ({ body: String((runs += 1)) }), {
          consume: { rpm: 3 },
          waitUpToMs: 60_000,
        });
        await client.send({ headers });
        const stream = client.open({ method, headers });
        await until(() => setting.clock.sleeping === 1);
        stream.close(NGHTTP2_CANCEL);
        await until(() => setting.clock.sleeping === 0);
        await setting.clock.advance(60_000);
        await nextTurns();
        expect([runs, await setting.left()]).toEqual([1, 3]);
      },
    );

    // After NO_ERROR Node's server never closes a stream that still has something to send.
    it.each(
      [NGHTTP2_CANCEL, NGHTTP2_NO_ERROR].flatMap((code) => [
        [code, "a text"],
        [code, "a stream"],
      ]),
    )(
      "ends a request as not completed if its client leaves (%i) before %s was sent",
      async (code, what) => {
        const body = new HeldBody();
        const long = "x".repeat(2 ** 24);
        body.send(long);
        const { ended, client } = await settling(adapter, () => ({
          body: what === "a text" ? long : body,
        }));
        const stream = client.open({ headers });
        await once(stream, "response");
        stream.close(code);
        await until(() => ended.length > 0);
        body.end();
        await nextTurns();
        expect(ended).toEqual([{ status: 200, completed: false }]);
      },
    );
  });
});

it("reports a response as not completed if its handler ended it because of a reset", async () => {
  const { options, ends } = await tenRequests<IncomingMessage>();
  const limited = limitListener(options, (request, response) => {
    response.flushHeaders();
    request.on("aborted", () => response.end());
  });
  await using server = await listeningOn(http2Transports[0]!.create(limited));
  const stream = new Http2Client(server.url).open({});
  await once(stream, "response");
  stream.close(NGHTTP2_CANCEL);
  await until(() => ends.length > 0);
  expect(ends).toMatchObject([{ status: 200, completed: false }]);
});

/** Makes the client leave; without a code, it closes its connection. */
function leave(
  client: Http2Client,
  stream: ReturnType<Http2Client["open"]>,
  code: string | undefined,
): void {
  if (code === undefined) client.session.destroy();
  else stream.close(code === "CANCEL" ? NGHTTP2_CANCEL : NGHTTP2_NO_ERROR);
}

async function settling(
  adapter: ServerAdapter,
  handler?: Handler,
  more: Partial<CallOptions> = {},
) {
  const setting = await Setting.create(adapter);
  const { ended, server } = await setting.serveRecorded(handler, more);
  return { setting, ended, server, client: new Http2Client(server.url) };
}
