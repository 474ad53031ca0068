import { getEventListeners } from "node:events";
import { describe, expect, it } from "vitest";
import { NO_TOKENS } from "../../../src/llm/tokens/token-usage.ts";
import { heldAnswer } from "../../support/held-answer.ts";
import { bytes, HeldStream, IDLE_MS, Setting, readState, TextReader, tokens } from "./setting.ts";

/** A stream of which ten tokens were read, and what it belongs to. */
async function begin(setting: Setting) {
  const upstream = new HeldStream();
  const abort = new AbortController();
  const watched = await setting.watch(upstream.readable, abort.signal);
  const reader = watched.getReader();
  upstream.send(tokens(10));
  await reader.read();
  return { upstream, abort, reader };
}

type Begun = Awaited<ReturnType<typeof begin>>;

const REASON = new Error("the test's reason");

/** How a stream ends, and what a read returns afterwards. */
const ENDS: Record<
  string,
  {
    readonly act: (begun: Begun, setting: Setting) => unknown;
    readonly end: string;
    readonly read: "done" | RegExp;
    /** Whether the provider must be stopped. */
    readonly isCancelled?: true;
  }
> = {
  "read to its end": {
    act: async ({ upstream, reader }) => {
      upstream.send(bytes("."));
      upstream.end();
      await reader.read();
    },
    end: "complete",
    read: "done",
  },
  "cancelled after its completion": {
    act: async ({ upstream, reader }) => {
      upstream.send(bytes("."));
      await reader.read();
      await reader.cancel();
    },
    end: "complete",
    read: "done",
    isCancelled: true,
  },
  "failing after its completion": {
    act: async ({ upstream, reader }) => {
      upstream.send(bytes("."));
      await reader.read();
      upstream.fail(REASON);
    },
    end: "complete",
    read: /test's reason/,
  },
  cancelled: {
    act: ({ reader }) => reader.cancel(REASON),
    end: "abandoned",
    read: "done",
    isCancelled: true,
  },
  "aborted between reads": {
    act: ({ abort }) => abort.abort(REASON),
    end: "abandoned",
    read: /test's reason/,
    isCancelled: true,
  },
  "failed by the provider": {
    act: ({ upstream }) => upstream.fail(REASON),
    end: "cut",
    read: /test's reason/,
  },
  "ended too early": { act: ({ upstream }) => upstream.end(), end: "cut", read: "done" },
  idle: {
    act: (_, { clock }) => clock.advance(IDLE_MS),
    end: "abandoned",
    read: /This stream was not read for 1000 ms/,
    isCancelled: true,
  },
};

describe("a stream", () => {
  it.each(Object.entries(ENDS))("that is %s is settled once", async (_name, { act, ...then }) => {
    const setting = await Setting.create("memory");
    const stream = await begin(setting);
    expect(getEventListeners(stream.abort.signal, "abort")).toHaveLength(1);
    expect(setting.clock.sleeping).toBe(1);
    await act(stream, setting);
    const read = stream.reader.read();
    if (then.read === "done") expect(await read).toEqual({ done: true, value: undefined });
    else await expect(read).rejects.toThrow(then.read);
    expect(getEventListeners(stream.abort.signal, "abort")).toEqual([]);
    expect(setting.clock.sleeping).toBe(0);
    // Whatever else may still happen changes nothing.
    stream.abort.abort();
    await stream.reader.cancel().catch(() => {});
    await setting.clock.advance(2 * IDLE_MS);
    expect(setting.ends).toEqual([[then.end, 10]]);
    expect(setting.settlements).toEqual(["settle"]);
    expect([await setting.left("tpm"), await setting.left("rpm")]).toEqual([890, 999]);
    expect([await setting.used("tpm"), await setting.used("rpm")]).toEqual([110, 1]);
    expect(stream.upstream.cancels).toHaveLength(then.isCancelled === true ? 1 : 0);
  });

  it("that is never read is settled when it has been idle", async () => {
    const setting = await Setting.create("memory");
    const upstream = new HeldStream();
    const watched = await setting.watch(upstream.readable);
    upstream.send(tokens(10));
    await setting.clock.advance(IDLE_MS - 1);
    expect(setting.ends).toEqual([]);
    await setting.clock.advance(1);
    expect(setting.ends).toEqual([["abandoned", 0]]);
    expect(await setting.left()).toBe(900);
    expect(upstream.cancels).toHaveLength(1);
    await expect(watched.getReader().read()).rejects.toMatchObject({
      code: "ERR_LIMITER_STREAM_IDLE",
    });
  });

  it("that is left costs what was reserved if it is kept", async () => {
    const setting = await Setting.create("memory", { abandoned: "kept" });
    const { reader } = await begin(setting);
    await reader.cancel();
    expect(setting.ends).toEqual([["abandoned", 10]]);
    expect(await setting.left()).toBe(700);
  });

  it("is complete once its whole usage was reported, even if its last event is missing", async () => {
    const setting = await Setting.create("memory");
    const upstream = new HeldStream();
    const reported = { ...NO_TOKENS, input: 90, output: 12 };
    const answer = Object.assign(new TextReader(), { reported, isReportFinal: true });
    const reader = (await setting.watch(upstream.readable, undefined, answer)).getReader();
    upstream.send(tokens(10));
    upstream.end();
    await reader.read();
    expect((await reader.read()).done).toBe(true);
    expect(setting.records).toMatchObject([{ end: "complete", source: "reported" }]);
    expect(await setting.left()).toBe(1000 - 102);
  });

  it("of a call that was aborted before it began to answer is settled", async () => {
    const setting = await Setting.create("memory");
    const upstream = new HeldStream();
    const watched = await setting.watch(upstream.readable, AbortSignal.abort(REASON));
    await expect(watched.getReader().read()).rejects.toBe(REASON);
    expect(setting.ends).toEqual([["abandoned", 0]]);
    expect(upstream.cancels).toEqual([REASON]);
  });
});

describe("the end of a stream", () => {
  it("comes to all streams of one signal, which has one listener for them", async () => {
    const setting = await Setting.create("memory", { budget: 100_000 });
    const abort = new AbortController();
    const open = async () =>
      (await setting.watch(new HeldStream().readable, abort.signal)).getReader();
    const readers = await Promise.all(Array.from({ length: 20 }, open));
    expect(getEventListeners(abort.signal, "abort")).toHaveLength(1);
    await readers[0]!.cancel();
    expect(getEventListeners(abort.signal, "abort")).toHaveLength(1);
    abort.abort(REASON);
    for (const reader of readers.slice(1)) await expect(reader.read()).rejects.toBe(REASON);
    expect(setting.records).toHaveLength(20);
  });

  it("waits for the settlement, and data do not", async () => {
    const setting = await Setting.create("memory");
    const { upstream, reader } = await begin(setting);
    const gate = heldAnswer<void>();
    setting.gates.set("settle", gate.promise);
    upstream.send(bytes("."), bytes("more"), bytes("and more"));
    upstream.end();
    await reader.read();
    expect((await reader.read()).value).toEqual(bytes("more"));
    expect((await reader.read()).value).toEqual(bytes("and more"));
    const end = reader.read();
    expect(await readState(end)).toBe("pending");
    gate.resolve();
    expect((await end).done).toBe(true);
    expect(await setting.left()).toBe(890);
  });

  it.each(["cancelled", "aborted between reads", "failed by the provider", "idle"])(
    "waits for the settlement if it is %s",
    async (name) => {
      const setting = await Setting.create("memory");
      const stream = await begin(setting);
      const gate = heldAnswer<void>();
      setting.gates.set("settle", gate.promise);
      const ending =
        name === "cancelled"
          ? stream.reader.cancel()
          : Promise.resolve(ENDS[name]!.act(stream, setting)).then(() => stream.reader.read());
      const state = await readState(ending);
      gate.resolve();
      await ending.catch(() => {});
      expect(state).toBe("pending");
      expect(await setting.left()).toBe(890);
    },
  );

  it("of a cancelled stream is settled before an error of the provider's end is passed on", async () => {
    const setting = await Setting.create("memory");
    const upstream = new ReadableStream<Uint8Array>({ cancel: () => Promise.reject(REASON) });
    const watched = await setting.watch(upstream);
    const gate = heldAnswer<void>();
    setting.gates.set("settle", gate.promise);
    const ending = watched.cancel();
    const state = await readState(ending);
    gate.resolve();
    await expect(ending).rejects.toBe(REASON);
    expect(state).toBe("pending");
  });

  it("by a mistake of the reader of the answer is a cut, and the provider is stopped", async () => {
    const setting = await Setting.create("memory");
    const upstream = new HeldStream();
    const watched = await setting.watch(upstream.readable, undefined, {
      outputBytes: 4,
      reported: undefined,
      isReportFinal: false,
      isComplete: false,
      hasUnreadableUsage: false,
      read: () => {
        throw REASON;
      },
      end: () => undefined,
    });
    upstream.send(tokens(1));
    await expect(watched.getReader().read()).rejects.toBe(REASON);
    expect(setting.ends).toEqual([["cut", 1]]);
    expect(upstream.cancels).toEqual([REASON]);
  });
});

describe("idleness", () => {
  it("is only time during which the reader does not wait for a chunk", async () => {
    const setting = await Setting.create("memory");
    const { upstream, reader } = await begin(setting);
    const slow = reader.read();
    await setting.clock.advance(10 * IDLE_MS);
    upstream.send(tokens(1));
    expect((await slow).value).toEqual(tokens(1));
    await setting.clock.advance(IDLE_MS - 1);
    expect(setting.ends).toEqual([]);
    await setting.clock.advance(1);
    expect(setting.ends).toEqual([["abandoned", 11]]);
  });

  it("begins anew with each chunk", async () => {
    const setting = await Setting.create("memory");
    const { upstream, reader } = await begin(setting);
    for (let chunk = 0; chunk < 20; chunk += 1) {
      await setting.clock.advance(0.9 * IDLE_MS);
      upstream.send(tokens(1));
      await reader.read();
    }
    await setting.clock.advance(IDLE_MS - 1);
    expect(setting.ends).toEqual([]);
    await setting.clock.advance(1);
    expect(setting.ends).toEqual([["abandoned", 30]]);
  });

  it("is not longer because the clock was set back", async () => {
    const setting = await Setting.create("memory");
    await begin(setting);
    setting.clock.set(setting.clock.now() - 100 * IDLE_MS);
    await setting.clock.advance(100 * IDLE_MS);
    await setting.clock.advance(2 * IDLE_MS);
    expect(setting.ends).toEqual([["abandoned", 10]]);
  });

  it("passes nothing on while it is settled", async () => {
    const setting = await Setting.create("memory");
    const { upstream, reader } = await begin(setting);
    const gate = heldAnswer<void>();
    setting.gates.set("settle", gate.promise);
    await setting.clock.advance(IDLE_MS);
    expect(upstream.cancels).toHaveLength(1);
    const read = reader.read();
    expect(await readState(read)).toBe("pending");
    gate.resolve();
    await expect(read).rejects.toMatchObject({ code: "ERR_LIMITER_STREAM_IDLE" });
  });
});
