/*
 * Both copies of the library and the question alone in one process, in short turns: prints the
 * ratio of the copies' CPU, and what an acquire of each and the question cost. Usage: node
 * telemetry-worker.js FIRST ROUNDS TURN_MS WARM_UP_MS, where FIRST is the copy that is loaded and
 * warmed up first, which makes a difference: "with" or "without".
 */
import { channel, tracingChannel } from "node:diagnostics_channel";
import { register } from "node:module";
import { runInThisContext } from "node:vm";
import type * as Library from "zae-limiter";
import type * as Memory from "zae-limiter/memory";
import { cpuRatio, interleave, median, type Contestant, type Measured } from "./harness.ts";

/** More functions than the compiler tells apart at one place. */
const TABLE = 16;

register("./without-channels-hooks.js", import.meta.url);
const [first, ...pace] = process.argv.slice(2);
const [rounds, turnMs, warmUpMs] = pace.map(Number) as [number, number, number];
const copies = [await prepareAcquire(""), await prepareAcquire("?without")];
const contestants = [
  ...(first === "with" ? copies : copies.toReversed()),
  buildQuestion("question"),
  buildQuestion("no question"),
];
const measured = await interleave(contestants, { rounds, turnMs, warmUpMs });
const findMeasured = (name: string): Measured => measured.find((one) => one.name === name)!;
const getCost = (name: string): number => median(findMeasured(name).cpuNs);
console.log(
  JSON.stringify({
    ratio: cpuRatio(findMeasured(""), findMeasured("?without")),
    cpuNs: [getCost(""), getCost("?without"), getCost("question") - getCost("no question")],
  }),
);

/**
 * The check of every acquire, on channels of the same kind without subscribers; or the same calls
 * of functions that ask nothing. They are called through a table of functions that the compiler has
 * to take for different ones: otherwise it asks once, before the loop.
 */
function buildQuestion(name: "question" | "no question"): Contestant {
  const acquire = tracingChannel("bench:acquire");
  const end = channel("bench:end");
  const question = name === "question" ? "acquire.hasSubscribers || end.hasSubscribers" : "false";
  const asks = Array.from({ length: TABLE }, (_, index) => {
    const source = `(acquire, end) => () => /* ${index} */ ${question}`;
    return (runInThisContext(source) as (...channels: object[]) => () => boolean)(acquire, end);
  });
  return {
    name,
    async run(operations) {
      let heard = 0;
      for (let count = 0; count < operations; count += 1) if (asks[count % TABLE]!()) heard += 1;
      if (heard > 0) throw new Error("there is a subscriber");
    },
  };
}

async function prepareAcquire(mark: string): Promise<Contestant> {
  const { Limit, RateLimiter } = (await import(`zae-limiter${mark}`)) as typeof Library;
  const { MemoryRepository } = (await import(`zae-limiter/memory${mark}`)) as typeof Memory;
  const repository = new MemoryRepository();
  await repository.setSystemDefaults([
    Limit.custom({ name: "rpm", capacity: 1e9, refillAmount: 1, refillPeriodSeconds: 3600 }),
  ]);
  const limiter = new RateLimiter({ repository });
  return {
    name: mark,
    async run(operations) {
      for (let count = 0; count < operations; count += 1) {
        const lease = await limiter.acquire({
          entityId: "customer",
          resource: "gpt-4",
          consume: { rpm: 1 },
        });
        await lease.commit();
      }
    },
  };
}
