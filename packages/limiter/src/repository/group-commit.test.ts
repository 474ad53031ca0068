import { describe, expect, it } from "vitest";
import { RateLimiterUnavailable } from "../core/errors.ts";
import { GroupCommit, type Member, type WriteBatch } from "./group-commit.ts";

type Batch = readonly Member<string, string>[];

/** A store whose writes end when the test decides. */
class Writes {
  readonly batches: Batch[] = [];
  #ends: ((error?: Error) => void)[] = [];

  readonly write: WriteBatch<string, string> = (batch) => {
    this.batches.push(batch);
    return new Promise((resolve, reject) =>
      this.#ends.push((error) => (error === undefined ? resolve() : reject(error))),
    );
  };

  /** The work in each batch so far. */
  get carried(): readonly (readonly string[])[] {
    return this.batches.map((batch) => batch.map(({ work }) => work));
  }

  /** Ends the current write. Resolves all of its members except the named ones. */
  async end(open: readonly string[] = []): Promise<void> {
    for (const member of this.batches.at(-1)!)
      if (member.isOpen && !open.includes(member.work))
        member.resolve(`${member.work} in write ${this.batches.length}`);
    await this.settle();
  }

  /** Ends the current write and leaves its members open. */
  async settle(error?: Error): Promise<void> {
    this.#ends.shift()!(error);
    for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
  }
}

describe("group commit", () => {
  it("makes one batch, in order of arrival, of the members that arrive meanwhile", async () => {
    const { writes, submit, queue } = start();
    const answers = ["a", "b", "c", "d"].map(submit);
    expect(queue.waiting).toBe(3);
    await writes.end();
    expect(writes.carried).toEqual([["a"], ["b", "c", "d"]]);
    await writes.end();
    expect(await Promise.all(answers)).toEqual([
      "a in write 1",
      "b in write 2",
      "c in write 2",
      "d in write 2",
    ]);
  });

  it("never changes a batch while it is being written", async () => {
    const { writes, submit } = start();
    void submit("a");
    const [sent] = writes.batches;
    void submit("b");
    expect(sent).toHaveLength(1);
    await writes.end();
    expect(sent).toHaveLength(1);
  });

  it("puts members that a write left open first into the next batch", async () => {
    const { writes, submit } = start();
    for (const work of ["a", "b", "c"]) void submit(work);
    await writes.end();
    void submit("d");
    await writes.end(["b", "c"]);
    expect(writes.carried).toEqual([["a"], ["b", "c"], ["b", "c", "d"]]);
  });

  it("continues when a write left all members open and no others arrived", async () => {
    const { writes, submit } = start();
    const answer = submit("a");
    await writes.end(["a"]);
    await writes.end();
    expect(await answer).toBe("a in write 2");
  });

  it("lets one member fail alone", async () => {
    const { writes, submit } = start();
    const [first, second, third] = ["a", "b", "c"].map(submit) as [
      Promise<string>,
      Promise<string>,
      Promise<string>,
    ];
    await writes.end();
    writes.batches[1]![0]!.reject(new Error("not b"));
    await Promise.all([expect(second).rejects.toThrow("not b"), writes.end()]);
    expect(await Promise.all([first, third])).toEqual(["a in write 1", "c in write 2"]);
  });

  it("rejects only the open members of a batch whose write threw", async () => {
    const { writes, submit, queue } = start();
    const [first, second, third] = ["a", "b", "c"].map(submit) as [
      Promise<string>,
      Promise<string>,
      Promise<string>,
    ];
    await writes.end();
    const later = submit("d");
    writes.batches[1]![0]!.resolve("known before");
    await Promise.all([expect(third).rejects.toThrow("away"), writes.settle(new Error("away"))]);
    await writes.end();
    expect(await Promise.all([first, second, later])).toEqual([
      "a in write 1",
      "known before",
      "d in write 3",
    ]);
    expect(queue.isIdle).toBe(true);
  });

  it("treats a write that throws synchronously as failed", async () => {
    const queue = new GroupCommit<string, string>();
    await expect(queue.submit("a", broken)).rejects.toThrow("at once");
    expect(queue.isIdle).toBe(true);
  });

  it("bounds a batch, and leaves the rest in order for the next batches", async () => {
    const { writes, submit, queue } = start();
    const works = Array.from({ length: 600 }, (_, index) => String(index));
    for (const work of works) void submit(work);
    while (!queue.isIdle) await writes.end();
    expect(writes.batches.map(({ length }) => length)).toEqual([1, 256, 256, 87]);
    expect(writes.carried.flat()).toEqual(works);
  });

  it("fails members without room in a batch if the store was unavailable while they waited, but none that arrived later", async () => {
    const { writes, submit, queue } = start();
    const first = submit("first");
    const many = Promise.allSettled(
      Array.from({ length: 600 }, (_, index) => submit(String(index))),
    );
    await writes.end();
    const later = submit("later");
    await writes.settle(new RateLimiterUnavailable("away"));
    expect((await many).map(({ status }) => status)).toEqual(
      Array.from({ length: 600 }, () => "rejected"),
    );
    await writes.end();
    expect(await Promise.all([first, later])).toEqual(["first in write 1", "later in write 3"]);
    expect(queue.isIdle).toBe(true);
  });

  it("fails only the members of a write that failed for another reason", async () => {
    const { writes, submit } = start();
    const answers = Promise.allSettled(
      Array.from({ length: 300 }, (_, index) => submit(String(index))),
    );
    await writes.end();
    await writes.settle(new Error("not understood"));
    await writes.end();
    const failed = (await answers).filter(({ status }) => status === "rejected");
    expect(failed).toHaveLength(256);
  });

  it("loses nothing that is submitted when the outcome of another member, even of the last one, arrives", async () => {
    const { writes, submit, queue } = start();
    const chain = (async (): Promise<readonly string[]> => {
      const answers: string[] = [];
      for (const work of ["a", "b", "c"]) answers.push(await submit(work));
      return answers;
    })();
    for (let write = 0; write < 3; write += 1) await writes.end();
    expect(await chain).toEqual(["a in write 1", "b in write 2", "c in write 3"]);
    expect(queue.isIdle).toBe(true);
  });

  it("loses nothing submitted in any turn in which a write ends", async () => {
    for (let turns = 0; turns < 12; turns += 1) {
      const queue = new GroupCommit<string, string>();
      const first = queue.submit("1", echo);
      for (let turn = 0; turn < turns; turn += 1) await Promise.resolve();
      expect(await Promise.all([first, queue.submit("2", echo)])).toEqual(["1", "2"]);
    }
  });
});

function start(): {
  writes: Writes;
  queue: GroupCommit<string, string>;
  submit: (work: string) => Promise<string>;
} {
  const writes = new Writes();
  const queue = new GroupCommit<string, string>();
  return { writes, queue, submit: (work) => queue.submit(work, writes.write) };
}

const broken: WriteBatch<string, string> = () => {
  throw new Error("at once");
};

const echo: WriteBatch<string, string> = async (batch) => {
  await Promise.resolve();
  for (const member of batch) member.resolve(member.work);
};
