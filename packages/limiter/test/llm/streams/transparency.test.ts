import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { describe, expect, it, onTestFinished } from "vitest";
import { heldAnswer } from "../../support/held-answer.ts";
import { listening, type Listening } from "../../support/listening.ts";
import { bytes, HeldStream, nextTurns, Setting, toText, tokens } from "./setting.ts";

/** A server whose answers a test writes. */
async function serve(answer: (response: ServerResponse) => unknown): Promise<Listening> {
  const server = await listening((_request, response) => void answer(response));
  onTestFinished(() => server[Symbol.asyncDispose]());
  return server;
}

/** A server that sends ten tokens and then waits until its client closes the connection. */
async function servedInPart() {
  const closed = heldAnswer<void>();
  const server = await serve((response) => {
    response.once("close", () => closed.resolve());
    response.write(tokens(10));
  });
  return { server, closed: closed.promise };
}

/** Fetches the body of an answer from a socket. */
async function bodyFrom({ url }: Listening, signal?: AbortSignal) {
  const { body } = await fetch(url, signal === undefined ? {} : { signal });
  return body!;
}

/** Returns the error of a body, as callers see it. */
async function classifyError(body: ReadableStream<Uint8Array>): Promise<unknown> {
  try {
    for await (const _ of body);
  } catch (error) {
    const { name, message, cause } = error as Error;
    return [name, message, (cause as { readonly code?: string }).code];
  }
  return undefined;
}

describe("what passes", () => {
  it("is the same chunks in the same order, neither merged nor split", async () => {
    const setting = await Setting.create("memory", { budget: 100_000 });
    const chunks = Array.from({ length: 500 }, (_, index) => bytes("x".repeat(index % 7)));
    const upstream = new HeldStream();
    const watched = await setting.watch(upstream.readable);
    upstream.send(...chunks, bytes("."));
    upstream.end();
    const passed: Uint8Array[] = [];
    for await (const chunk of watched) passed.push(chunk);
    expect(passed).toHaveLength(501);
    expect(chunks.every((chunk, index) => chunk === passed[index])).toBe(true);
    expect(setting.ends[0]![0]).toBe("complete");
  });

  it("is read only when it is asked for", async () => {
    const setting = await Setting.create("memory");
    const upstream = new HeldStream();
    const reader = (await setting.watch(upstream.readable)).getReader();
    await nextTurns();
    expect(upstream.pulls).toBe(0);
    for (let read = 1; read <= 10; read += 1) {
      const reading = reader.read();
      await nextTurns(1);
      upstream.send(tokens(1));
      await reading;
      await nextTurns(1);
      expect(upstream.pulls).toBe(read);
    }
  });

  it("is read on if a chunk is withheld, however many are", async () => {
    const setting = await Setting.create("memory");
    const upstream = new HeldStream();
    const reader = (await setting.watch(upstream.readable)).getReader();
    upstream.send(...Array.from({ length: 100 }, () => bytes("#")), tokens(1));
    expect((await reader.read()).value).toEqual(tokens(1));
    upstream.send(bytes("#."));
    upstream.end();
    expect((await reader.read()).done).toBe(true);
    expect(setting.ends).toEqual([["complete", 1]]);
  });

  it("keeps back-pressure: 200 MB wait at the sender for a slow reader", async () => {
    const setting = await Setting.create("memory", { budget: 100_000_000 });
    const chunk = Buffer.alloc(1_000_000, "word");
    const total = 200_000_000;
    let sent = 0;
    const server = await serve(async (response) => {
      while (sent < total) {
        sent += chunk.length;
        if (!response.write(chunk)) await once(response, "drain");
      }
      response.end(".");
    });
    const watched = await setting.watch(await bodyFrom(server));
    let received = 0;
    let mostAhead = 0;
    for await (const { length } of watched) {
      received += length;
      // The sender gets a turn with each chunk, so it would run ahead if anything read for it.
      await nextTurns(1);
      mostAhead = Math.max(mostAhead, sent - received);
    }
    expect(received).toBe(total + 1);
    expect(setting.ends).toEqual([["complete", total / 4]]);
    // What the buffers of two sockets and of fetch hold: some 5 MB.
    expect(mostAhead).toBeLessThan(30_000_000);
  });
});

/** Ways to read a stream to its end. */
const READERS: Record<string, (stream: ReadableStream<Uint8Array>) => Promise<string>> = {
  "for await": async (stream) => {
    const chunks: Uint8Array[] = [];
    for await (const chunk of stream) chunks.push(chunk);
    return toText(chunks);
  },
  "Readable.fromWeb": async (stream) => {
    const readable = Readable.fromWeb(stream as Parameters<typeof Readable.fromWeb>[0]);
    return toText(await readable.toArray());
  },
  tee: async (stream) => {
    const [one, other] = stream.tee();
    const texts = await Promise.all([new Response(one).text(), new Response(other).text()]);
    expect(texts[0]).toBe(texts[1]);
    return texts[0];
  },
};

/** Ways to leave a stream after its first chunk. */
const LEAVERS: Record<string, (stream: ReadableStream<Uint8Array>) => Promise<unknown>> = {
  "break in for await": async (stream) => {
    for await (const _ of stream) break;
  },
  "a Readable that is destroyed": async (stream) => {
    const readable = Readable.fromWeb(stream as Parameters<typeof Readable.fromWeb>[0]);
    await once(readable, "data");
    readable.destroy();
    await once(readable, "close");
  },
};

describe("a body from a socket", () => {
  it.each(Object.entries(READERS))("can be read with %s", async (_name, read) => {
    const setting = await Setting.create("memory", { budget: 1_000_000 });
    const text = Array.from({ length: 2000 }, (_, line) => `line ${line} äöü😀\n`).join("");
    const server = await serve(async (response) => {
      for (const line of text.split(/(?<=\n)/))
        if (!response.write(line)) await once(response, "drain");
      response.end(".");
    });
    expect(await read(await setting.watch(await bodyFrom(server)))).toBe(`${text}.`);
    expect(setting.ends).toEqual([["complete", Math.ceil(Buffer.byteLength(text) / 4)]]);
    expect(setting.clock.sleeping).toBe(0);
  });

  it.each(Object.entries(LEAVERS))(
    "can be left with %s, which closes the connection",
    async (_name, leave) => {
      const setting = await Setting.create("memory");
      const { server, closed } = await servedInPart();
      await leave(await setting.watch(await bodyFrom(server)));
      await closed;
      await nextTurns();
      expect(setting.ends).toEqual([["abandoned", 10]]);
      expect(await setting.left()).toBe(890);
      expect(setting.clock.sleeping).toBe(0);
    },
  );

  it("that is cut off fails with the same error as without the limiter", async () => {
    const setting = await Setting.create("memory");
    const server = await serve((response) => {
      response.write(tokens(10), () => setImmediate(() => response.destroy()));
    });
    const plain = await classifyError(await bodyFrom(server));
    expect(plain).toEqual(["TypeError", "terminated", "UND_ERR_SOCKET"]);
    expect(await classifyError(await setting.watch(await bodyFrom(server)))).toEqual(plain);
    expect(setting.ends).toEqual([["cut", 10]]);
  });
});
