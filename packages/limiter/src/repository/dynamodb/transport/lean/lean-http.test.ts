import { spawn } from "node:child_process";
import { getEventListeners, once, setMaxListeners } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import { createServer as createTcpServer, type AddressInfo, type Server } from "node:net";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { useLeanCalls } from "../../../../../test/support/lean-calls.ts";
import { reply, startScriptedServer } from "../../../../../test/support/scripted-server.ts";

import { classifyError } from "../failure.ts";

const lean = useLeanCalls();

describe("connections", () => {
  it("are kept and used again, the last one first", async () => {
    const transport = await lean.open();
    await Promise.all([lean.call(transport), lean.call(transport), lean.call(transport)]);
    expect(lean.server.connections).toBe(3);
    for (let count = 0; count < 10; count += 1) await lean.call(transport);
    expect(lean.server.connections).toBe(3);
    expect(new Set(lean.server.seen.slice(3).map(({ connection }) => connection)).size).toBe(1);
  });

  it("are 128 at most; further calls wait for one", async () => {
    const transport = await lean.open();
    const waiting: ServerResponse[] = [];
    lean.server.answer = (outgoing) => void waiting.push(outgoing);
    const calls = Array.from({ length: 130 }, async () => lean.call(transport));
    await vi.waitFor(() => expect(lean.server.seen).toHaveLength(128));
    lean.server.answer = (outgoing) => reply(outgoing, {});
    for (const outgoing of waiting) reply(outgoing, {});
    await Promise.all(calls);
    expect(lean.server.connections).toBe(128);
  });

  it.each(["end", "resetAndDestroy"] as const)(
    "that the server closed while they were idle (%s) are not used, and disturb no call",
    async (how) => {
      const transport = await lean.open();
      await lean.call(transport);
      for (const socket of lean.server.sockets) socket[how]();
      await vi.waitFor(() => expect(lean.server.sockets.size).toBe(0));
      await new Promise(setImmediate);
      await lean.call(transport);
      expect(lean.server.connections).toBe(2);
    },
  );

  it("that the server closes on a request leave its outcome unknown", async () => {
    const transport = await lean.open();
    await lean.call(transport);
    lean.server.answer = (outgoing) => outgoing.socket!.resetAndDestroy();
    expect(classifyError(await lean.failure(transport))).toMatchObject({
      kind: "unavailable",
      ambiguous: true,
    });
    expect(lean.server.seen.map(({ connection }) => connection)).toEqual([1, 1]);
    expect(classifyError(await lean.failure(transport))).toMatchObject({
      kind: "unavailable",
      ambiguous: true,
    });
  });

  it("that are refused never sent anything", async () => {
    const transport = await lean.open();
    await lean.serve(await startScriptedServer());
    expect(classifyError(await lean.failure(transport))).toMatchObject({
      kind: "unavailable",
      ambiguous: false,
    });
  });

  it("that end during the TLS handshake never sent anything", async () => {
    const tcp = createTcpServer(
      (socket) => void socket.once("data", () => socket.resetAndDestroy()),
    );
    const transport = await lean.open({
      endpointUrl: (await listening(tcp)).replace("http:", "https:"),
    });
    expect(classifyError(await lean.failure(transport))).toMatchObject({
      kind: "unavailable",
      ambiguous: false,
    });
    tcp.close();
  });

  it("without TLS where TLS is expected are a configuration error", async () => {
    const transport = await lean.open({
      endpointUrl: lean.server.endpointUrl.replace("http:", "https:"),
    });
    expect(classifyError(await lean.failure(transport))).toEqual({ kind: "rejected" });
  });

  it("that switch to another protocol end the call", async () => {
    const tcp = createTcpServer(
      (socket) =>
        void socket.once("data", () =>
          socket.end("HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n"),
        ),
    );
    const transport = await lean.open({ endpointUrl: await listening(tcp) });
    expect(classifyError(await lean.failure(transport))).toMatchObject({
      kind: "unavailable",
      ambiguous: true,
    });
    tcp.close();
  });

  it("that do not speak HTTP leave the outcome unknown", async () => {
    const tcp = createTcpServer(
      (socket) => void socket.once("data", () => socket.end("SSH-2.0-OpenSSH_9.2\r\n")),
    );
    const transport = await lean.open({ endpointUrl: await listening(tcp) });
    const error = await lean.failure(transport);
    expect(classifyError(error)).toMatchObject({ kind: "unavailable", ambiguous: true });
    expect(error).toMatchObject({
      code: "ERR_LIMITER_UNREADABLE_ANSWER",
      cause: { code: "HPE_INVALID_CONSTANT" },
    });
    tcp.close();
  });

  it("are closed with the call that aborts, and leave nothing behind", async () => {
    const transport = await lean.open();
    lean.server.answer = () => {};
    const controller = new AbortController();
    const removed = vi.spyOn(controller.signal, "removeEventListener");
    const given = lean.failure(transport, controller.signal);
    await vi.waitFor(() => expect(lean.server.seen).toHaveLength(1));
    controller.abort(new Error("enough"));
    expect((await given).message).toBe("enough");
    await vi.waitFor(() => expect(lean.server.sockets.size).toBe(0));
    expect(removed).toHaveBeenCalled();
    lean.server.answer = (outgoing) => reply(outgoing, {});
    expect(await lean.call(transport)).toEqual({});
  });

  it("are available again after all of them hung and every call gave up", async () => {
    const transport = await lean.open();
    lean.server.answer = () => {};
    const controller = new AbortController();
    setMaxListeners(0, controller.signal);
    const calls = Array.from({ length: 200 }, async () =>
      lean.failure(transport, controller.signal),
    );
    await vi.waitFor(() => expect(lean.server.seen).toHaveLength(128));
    controller.abort(new Error("enough"));
    for (const { message } of await Promise.all(calls)) expect(message).toBe("enough");
    lean.server.answer = (outgoing) => reply(outgoing, {});
    await Promise.all(Array.from({ length: 200 }, async () => lean.call(transport)));
    expect(lean.server.seen).toHaveLength(128 + 200);
  });

  it("are not opened for a call that has aborted already", async () => {
    const transport = await lean.open();
    expect((await lean.failure(transport, AbortSignal.abort(new Error("before")))).message).toBe(
      "before",
    );
    expect(lean.server.connections).toBe(0);
  });

  it("leave no listeners on a long-lived signal", async () => {
    const transport = await lean.open();
    const warned = vi.spyOn(process, "emitWarning");
    const { signal } = new AbortController();
    for (let count = 0; count < 30; count += 1) await lean.call(transport, {}, signal);
    expect(getEventListeners(signal, "abort")).toEqual([]);
    expect(warned).not.toHaveBeenCalled();
  });

  it("end with close, which also ends calls in progress and queued calls", async () => {
    const transport = await lean.open();
    lean.server.answer = () => {};
    const calls = Array.from({ length: 130 }, async () => lean.failure(transport));
    await vi.waitFor(() => expect(lean.server.seen).toHaveLength(128));
    transport.close();
    for (const error of await Promise.all(calls))
      expect(classifyError(error).kind).toBe("unavailable");
    await vi.waitFor(() => expect(lean.server.sockets.size).toBe(0));
    expect(classifyError(await lean.failure(transport))).toMatchObject({
      kind: "unavailable",
      ambiguous: false,
    });
    expect(lean.server.connections).toBe(128);
  });
});

it("lets a process end although connections are kept and the transport is not closed", async () => {
  // A server that never closes a connection by itself.
  await lean.serve(await startScriptedServer(createServer({ keepAliveTimeout: 0 })));
  const script = `
    import { leanTransport } from "zae-limiter/dynamodb";
    const transport = await leanTransport({ endpointUrl: process.argv[1], region: "eu-west-1" });
    await transport.call("UpdateItem", {}, { signal: new AbortController().signal });
  `;
  const child = spawn(
    process.execPath,
    ["--input-type=module", "-e", script, lean.server.endpointUrl],
    { stdio: "inherit" },
  );
  onTestFinished(() => void child.kill("SIGKILL"));
  expect(await once(child, "exit")).toEqual([0, null]);
  expect(lean.server.seen).toHaveLength(1);
});

async function listening(tcp: Server): Promise<string> {
  tcp.listen(0, "127.0.0.1");
  await once(tcp, "listening");
  return `http://127.0.0.1:${(tcp.address() as AddressInfo).port}`;
}
