import { afterEach, beforeEach, expect, it, vi, type MockInstance } from "vitest";
import { forgetWarnings } from "../warnings/warn-once.ts";
import { isMeteredAlready, runMetered } from "./nested-calls.ts";

let warned: MockInstance;

beforeEach(() => {
  forgetWarnings();
  warned = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
});

afterEach(() => {
  vi.restoreAllMocks();
  forgetWarnings();
});

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** An adapter: charges unless something further out does. */
class Adapter {
  charged = 0;

  async call<T>(work: () => T | PromiseLike<T>): Promise<T> {
    if (isMeteredAlready()) return work();
    this.charged += 1;
    await turn(); // it estimates and takes
    return runMetered(work);
  }
}

it("a call that passes two meters is charged once, by the outer one, with one warning", async () => {
  const [outer, inner] = [new Adapter(), new Adapter()];
  for (let calls = 0; calls < 3; calls += 1)
    expect(await outer.call(() => inner.call(() => "answer"))).toBe("answer");
  expect([outer.charged, inner.charged]).toEqual([3, 0]);
  expect(warned).toHaveBeenCalledOnce();
  expect(warned.mock.calls[0]![1]).toEqual({ code: "WARN_LIMITER_METERED_TWICE" });
});

it("it is inside after awaits, timers and further functions, and in each attempt", async () => {
  const [outer, inner] = [new Adapter(), new Adapter()];
  await outer.call(async () => {
    for (let attempt = 0; attempt < 3; attempt += 1) {
      await turn();
      await Promise.all([inner.call(turn), turn().then(() => inner.call(turn))]);
    }
  });
  expect([outer.charged, inner.charged]).toEqual([1, 0]);
});

it("it is inside of a promise that begins its work only when it is awaited", async () => {
  const [outer, inner] = [new Adapter(), new Adapter()];
  let begun = 0;
  const late: PromiseLike<string> = {
    // oxlint-disable-next-line unicorn/no-thenable -- what some clients return
    then: (...handlers) => {
      begun += 1;
      return inner.call(() => "late").then(...handlers);
    },
  };
  expect(await outer.call(() => late)).toBe("late");
  expect([outer.charged, inner.charged, begun]).toEqual([1, 0, 1]);
});

it("calls beside it are not inside", async () => {
  const adapters = Array.from({ length: 20 }, () => new Adapter());
  await Promise.all(adapters.map((adapter) => adapter.call(turn)));
  expect(adapters.map(({ charged }) => charged)).toEqual(adapters.map(() => 1));
  expect(warned).not.toHaveBeenCalled();
});

it("what reads the stream that a call answered with is not inside, although its context is", async () => {
  const [agent, tool, fetched] = [new Adapter(), new Adapter(), new Adapter()];
  const stream = await agent.call(() =>
    fetched.call(async () => {
      await turn();
      // The source runs in the context of the call, and so does what it calls.
      return new ReadableStream<string>({
        pull: async (controller) => {
          await turn();
          controller.enqueue("part");
          await tool.call(turn);
          controller.close();
        },
      });
    }),
  );
  const parts: string[] = [];
  // Tools run while an answer streams, in the middle of a chain of streams.
  const tools = new TransformStream<string, string>({
    transform: async (part, controller) => {
      await tool.call(turn);
      controller.enqueue(part);
    },
  });
  for await (const part of stream.pipeThrough(tools)) parts.push(part);
  expect(parts).toEqual(["part"]);
  expect([agent.charged, fetched.charged, tool.charged]).toEqual([1, 0, 2]);
});

it("a call that throws is over", async () => {
  const [outer, later] = [new Adapter(), new Adapter()];
  let after: Promise<unknown> | undefined;
  const failing = outer.call(async () => {
    after = turn()
      .then(turn)
      .then(() => later.call(turn));
    throw new Error("work");
  });
  await expect(failing).rejects.toThrow("work");
  await after;
  expect(later.charged).toBe(1);
  await expect(
    outer.call(() => {
      throw new Error("at once");
    }),
  ).rejects.toThrow("at once");
});
