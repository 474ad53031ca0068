import { Limit, RateLimiterUnavailable, RateLimitExceeded } from "zae-limiter";
import { METERING } from "zae-limiter/llm";
import { describe, expect, it } from "vitest";
import { heldAnswer } from "../../support/held-answer.ts";
import { BACKENDS, HeldStream, IDLE_MS, nextTurns, Setting, readState, tokens } from "./setting.ts";

const STRIDE = 256;

/** Reads a stream. Returns the delivered tokens, and the error that it ended with. */
async function drained(stream: ReadableStream<Uint8Array>) {
  let text = 0;
  try {
    for await (const chunk of stream) text += chunk.length;
    return { delivered: text / 4, error: undefined };
  } catch (error) {
    return { delivered: text / 4, error };
  }
}

/** Builds an answer of so many tokens, in chunks of so many. */
function getAnswer(total: number, chunk: number): ReadableStream<Uint8Array<ArrayBuffer>> {
  let sent = 0;
  return new ReadableStream({
    pull(controller) {
      const next = Math.min(chunk, total - sent);
      sent += next;
      controller.enqueue(tokens(next, sent === total ? "." : ""));
      if (sent === total) controller.close();
    },
  });
}

describe.each(BACKENDS)("a budget of 1000 tokens on %s", (backend) => {
  it.each([1, 7, 100, 256, 257, 900, 5000, 100_000])(
    "stops an answer of 100 000 tokens in chunks of %i",
    async (chunk) => {
      const setting = await Setting.create(backend, { overrun: "stop" });
      const { delivered, error } = await drained(await setting.watch(getAnswer(100_000, chunk)));
      expect(error).toBeInstanceOf(RateLimitExceeded);
      const used = (await setting.used())!;
      const left = (await setting.left())!;
      expect(left).toBeGreaterThanOrEqual(0);
      expect(used + left).toBe(1000);
      expect(delivered).toBeLessThanOrEqual(used - 100 + STRIDE);
      expect(setting.ends.map(([end]) => end)).toEqual(["stopped"]);
      expect(await setting.left("rpm")).toBe(999);
      // Small chunks use the budget up: only the chunk that was refused does not fit any more.
      if (chunk <= 100) expect(left).toBeLessThan(chunk);
    },
  );

  it("lets an answer that fits to its end, and gives the excess back", async () => {
    const setting = await Setting.create(backend, { overrun: "stop" });
    const { delivered, error } = await drained(await setting.watch(getAnswer(880, 10)));
    expect([delivered, error]).toEqual([880.25, undefined]);
    expect(setting.ends).toEqual([["complete", 880]]);
    expect([await setting.used(), await setting.left()]).toEqual([980, 20]);
  });

  it("takes nothing more for an answer that was reserved for", async () => {
    const setting = await Setting.create(backend, { overrun: "stop" });
    await drained(await setting.watch(getAnswer(200, 10)));
    expect(setting.operations).toEqual(["consume"]);
  });

  it("takes about once every 256 tokens", async () => {
    const setting = await Setting.create(backend, { overrun: "stop", budget: 100_000 });
    await drained(await setting.watch(getAnswer(200 + 10 * STRIDE, 1)));
    expect(setting.operations).toEqual(Array.from({ length: 11 }, () => "consume"));
    expect(await setting.left()).toBe(100_000 - 300 - 10 * STRIDE);
  });

  it("charges each side of midnight what was streamed there, if it is a day's quota", async () => {
    const tpm = Limit.quota("tpm", 1000, { every: "day", zone: "UTC" });
    const limits = [Limit.perDay("rpm", 1000), tpm];
    const setting = await Setting.create(backend, { overrun: "stop", limits });
    await setting.clock.advance(86_400_000 - (setting.clock.now() % 86_400_000) - IDLE_MS / 2);
    const source = new HeldStream();
    const reader = (await setting.watch(source.readable)).getReader();
    source.send(tokens(250));
    await reader.read();
    await nextTurns();
    expect(await setting.left()).toBe(1000 - 300 - STRIDE);
    await setting.clock.advance(IDLE_MS - 1);
    expect(await setting.left()).toBe(1000);
    source.send(tokens(300));
    await reader.read();
    await nextTurns();
    expect(await setting.left()).toBe(1000 - STRIDE);
    source.send(tokens(10, "."));
    source.end();
    while (!(await reader.read()).done);
    expect(setting.ends).toEqual([["complete", 560]]);
    // Of the 152 tokens too many, only those of the new day are there again.
    expect(await setting.left()).toBe(1000 - STRIDE + 152);
    expect(await setting.used()).toBe(100 + 560);
  });

  it("is shared by streams that run at once, and none goes below zero", async () => {
    const setting = await Setting.create(backend, { overrun: "stop", budget: 5000 });
    const streams = Array.from({ length: 10 }, () => setting.watch(getAnswer(10_000, 3)));
    const ends = await Promise.all(streams.map(async (stream) => drained(await stream)));
    for (const { error } of ends) expect(error).toBeInstanceOf(RateLimitExceeded);
    const [used, left] = [(await setting.used())!, (await setting.left())!];
    expect(left).toBeGreaterThanOrEqual(0);
    expect(used + left).toBe(5000);
    const delivered = ends.reduce((sum, end) => sum + end.delivered, 0);
    expect(delivered).toBeLessThanOrEqual(used - 10 * 100 + 10 * STRIDE);
    expect(delivered).toBeGreaterThan(3000);
  });
});

describe("an answer that is longer than was reserved", () => {
  it("goes on without `overrun`, and its end is charged as debt", async () => {
    const setting = await Setting.create("memory");
    const { error } = await drained(await setting.watch(getAnswer(2000, 10)));
    expect(error).toBeUndefined();
    expect(await setting.left()).toBe(1000 - 2100);
  });

  it("passes on what was read before it takes, up to a stride", async () => {
    const setting = await Setting.create("memory", { overrun: "stop", budget: 10_000 });
    const gate = heldAnswer<void>();
    const upstream = new HeldStream();
    const reader = (await setting.watch(upstream.readable)).getReader();
    setting.gates.set("consume", gate.promise);
    upstream.send(tokens(200 + STRIDE), tokens(1));
    expect((await reader.read()).value).toHaveLength(4 * (200 + STRIDE));
    const next = reader.read();
    expect(await readState(next)).toBe("pending");
    gate.resolve();
    expect((await next).value).toHaveLength(4);
  });

  it("is taken before it is passed on if it is more than a stride", async () => {
    const setting = await Setting.create("memory", { overrun: "stop", budget: 10_000 });
    const gate = heldAnswer<void>();
    const upstream = new HeldStream();
    const reader = (await setting.watch(upstream.readable)).getReader();
    setting.gates.set("consume", gate.promise);
    upstream.send(tokens(201 + STRIDE, "."));
    const first = reader.read();
    expect(await readState(first)).toBe("pending");
    gate.resolve();
    expect((await first).value).toHaveLength(4 * (201 + STRIDE) + 1);
  });

  it("is refused as a whole if it comes in one piece, even if that is complete", async () => {
    const setting = await Setting.create("memory", { overrun: "stop" });
    const upstream = new HeldStream();
    const watched = await setting.watch(upstream.readable);
    upstream.send(tokens(5000, "."));
    const { delivered, error } = await drained(watched);
    expect(delivered).toBe(0);
    expect(error).toBeInstanceOf(RateLimitExceeded);
    expect(upstream.cancels).toEqual([error]);
    expect(await setting.left()).toBe(700);
  });

  it("stops nothing after its completion, whatever follows", async () => {
    const setting = await Setting.create("memory", { overrun: "stop" });
    const upstream = new HeldStream();
    const watched = await setting.watch(upstream.readable);
    upstream.send(tokens(10, "."), tokens(5000));
    upstream.end();
    expect(await drained(watched)).toEqual({ delivered: 5010.25, error: undefined });
    expect(setting.ends).toEqual([["complete", 10]]);
  });

  it.each(["cancel", "abort"])("can be left by %s while more is taken", async (how) => {
    const setting = await Setting.create("memory", { overrun: "stop" });
    const gate = heldAnswer<void>();
    const upstream = new HeldStream();
    const abort = new AbortController();
    const reader = (await setting.watch(upstream.readable, abort.signal)).getReader();
    setting.gates.set("consume", gate.promise);
    upstream.send(tokens(250), tokens(1));
    await reader.read();
    const pending = reader.read();
    await nextTurns();
    const cancelled = how === "cancel" ? reader.cancel() : abort.abort();
    await nextTurns();
    gate.resolve();
    await cancelled;
    if (how === "cancel") expect((await pending).done).toBe(true);
    else await expect(pending).rejects.toMatchObject({ name: "AbortError" });
    expect(setting.ends).toEqual([["abandoned", 250]]);
    expect([await setting.used(), await setting.left()]).toEqual([350, 650]);
  });
});

describe("the weights of a metering", () => {
  it("stop an answer by the limit that counts output", async () => {
    const setting = await Setting.create("memory", {
      overrun: "stop",
      metering: METERING.anthropic,
      limits: [
        Limit.perDay("rpm", 10),
        Limit.perDay("itpm", 150),
        Limit.perDay("otpm", 600),
        Limit.perDay("other", 1),
      ],
    });
    const { delivered, error } = await drained(await setting.watch(getAnswer(100_000, 10)));
    expect((error as RateLimitExceeded).violations.map(({ limitName }) => limitName)).toEqual([
      "otpm",
    ]);
    expect([delivered, await setting.left("otpm"), await setting.left("itpm")]).toEqual([
      610, 0, 50,
    ]);
  });

  it("that are fractions add up, however small the strides", async () => {
    const setting = await Setting.create("memory", {
      overrun: "stop",
      budget: 100,
      metering: { tpm: { requests: 1, input: 0.1, output: 0.003 } },
    });
    // 1 + 10 + 0.6 were reserved: 12. The rest is enough for 29 600 tokens: 100 = 11 + 0.003 x.
    const { delivered } = await drained(await setting.watch(getAnswer(100_000, 10)));
    const [used, left] = [(await setting.used())!, (await setting.left())!];
    expect([used, left]).toEqual([100, 0]);
    expect(delivered).toBeGreaterThan(29_600);
    expect(delivered).toBeLessThanOrEqual(29_667 + STRIDE);
  });

  it("without output stop nothing, and take nothing", async () => {
    const setting = await Setting.create("memory", {
      overrun: "stop",
      metering: { tpm: { input: 1 } },
    });
    const { delivered, error } = await drained(await setting.watch(getAnswer(100_000, 1000)));
    expect([delivered, error]).toEqual([100_000.25, undefined]);
    expect(setting.operations).toEqual(["consume"]);
    expect(await setting.left()).toBe(900);
  });
});

describe("a store that is unavailable while an answer streams", () => {
  it("ends the answer if calls are blocked then", async () => {
    const setting = await Setting.create("memory", { overrun: "stop" });
    const stream = await setting.watch(getAnswer(500, 10));
    setting.faults.set("consume", "error-before");
    const { delivered, error } = await drained(stream);
    expect(error).toBeInstanceOf(RateLimiterUnavailable);
    expect(delivered).toBe(210);
    expect(setting.ends).toEqual([["stopped", 210]]);
    expect([await setting.used(), await setting.left()]).toEqual([300, 700]);
  });

  it.each(["the options", "the stored defaults"])(
    "lets the answer go on if %s allow it",
    async (who) => {
      const isOwn = who === "the options";
      const setting = await Setting.create("memory", {
        overrun: "stop",
        ...(isOwn && { onUnavailable: "allow" }),
      });
      if (!isOwn) {
        const { limits } = await setting.repository.getSystemDefaults();
        await setting.repository.setSystemDefaults(limits, { onUnavailable: "allow" });
      }
      const stream = await setting.watch(getAnswer(2000, 10));
      setting.faults.set("consume", "error-before");
      const { delivered, error } = await drained(stream);
      expect([delivered, error]).toEqual([2000.25, undefined]);
      // It is asked once: an answer must not wait for every stride until the store times out. The
      // rest becomes debt.
      expect(setting.operations).toEqual(["consume", "consume", "settle"]);
      expect([await setting.used(), await setting.left()]).toEqual([2100, -1100]);
    },
  );
});
