/*
 * The formula of the guide's page on capacity, taken from the page, against what an engine consumes
 * in a minute of two loads.
 */
import { readFileSync } from "node:fs";
import { transformSync } from "esbuild";
import { afterEach, expect, it } from "vitest";
import { Limit, RateLimiter, RateLimitExceeded } from "zae-limiter";
import { runAggregator } from "zae-limiter/aggregator";
import { DynamoRepository } from "zae-limiter/dynamodb";
import { ManualClock } from "zae-limiter/testing";
import {
  numberOf,
  stringOf,
  type AttributeMap,
} from "../../../src/repository/dynamodb/transport/attribute-values.ts";
import { describeWithEngine, freshTableName, type Engine } from "../../support/engine.ts";
import { itemBytes } from "../../support/item-bytes.ts";
import { MeteredTransport } from "../../support/metered-transport.ts";
import { openTransport } from "../../support/transports.ts";

const page = readFileSync(
  new URL("../../../../../docs/guide/capacity-planning.md", import.meta.url),
  "utf8",
);
const START_MS = Date.UTC(2030, 0, 1);
const MINUTE = 60;
/** Seconds in which every key of the loads makes a call. */
const WARM_UP = 6;

interface Units {
  readonly write: number;
  readonly read: number;
}

type Formula = (load: Readonly<Record<string, number>>) => Units;

/** The block of the page that has the formula, as a module. */
async function formulaOfPage(): Promise<Formula> {
  const [, block] = /^```ts\n(\/\*\* What a fleet does.*?)^```$/ms.exec(page)!;
  const { code } = transformSync(`${block}export { unitsPerSecond };`, { loader: "ts" });
  const module = (await import(
    /* @vite-ignore */ `data:text/javascript,${encodeURIComponent(code)}`
  )) as { readonly unitsPerSecond: Formula };
  return module.unitsPerSecond;
}

describeWithEngine("the guide's page on capacity", (engine) => {
  const closing: (() => Promise<void>)[] = [];
  afterEach(async () => {
    for (const close of closing.splice(0)) await close();
  });

  /** A process with its clock, and a meter of what it consumes. */
  async function open() {
    const clock = new ManualClock(START_MS);
    const lean = await openTransport("lean", engine());
    closing.push(async () => lean.close());
    const transport = new MeteredTransport(lean, { measureCapacity: true });
    const repository = await DynamoRepository.open("app", {
      transport,
      clock,
      stack: freshTableName(),
      provisioning: "table",
      stream: false,
      requestTimeoutMs: 10_000,
    });
    closing.push(() => repository.close());
    await repository.setSystemDefaults([
      Limit.perMinute("rpm", 100_000),
      Limit.perMinute("tpm", 1_000_000),
    ]);
    return { clock, transport, repository, limiter: new RateLimiter({ repository }) };
  }

  /** What a minute of a load consumed, after enough of it that all buckets exist. */
  async function consumedInAMinute(
    { clock, transport }: Awaited<ReturnType<typeof open>>,
    second: (number: number) => Promise<void>,
  ): Promise<Units> {
    for (let number = -WARM_UP; number < 0; number += 1) await second(number);
    await clock.advance(MINUTE * 1000);
    transport.reset();
    for (let number = 0; number < MINUTE; number += 1) {
      await second(number);
      await clock.advance(1000);
    }
    const { read, write, failedConditions } = transport.counts();
    const indexes = Object.values(write.indexes).reduce((sum, units) => sum + units, 0);
    return { write: write.table + indexes + failedConditions, read: read.table };
  }

  it("a minute of a simple API costs what the formula says", async () => {
    const process = await open();
    const { repository, limiter } = process;
    await repository.setLimits("exhausted", [Limit.perDay("rpm", 1)]);
    const exhausted = { entityId: "exhausted", resource: "api", consume: { rpm: 1 } };
    await limiter.acquire(exhausted, () => {});
    const measured = await consumedInAMinute(process, async (second) => {
      for (let call = 0; call < 5; call += 1) {
        const entityId = `key-${((second + WARM_UP) * 5 + call) % 30}`;
        await limiter.acquire(
          { entityId, resource: "api", consume: { rpm: 1, tpm: 10 } },
          () => {},
        );
      }
      for (let call = 0; call < 2; call += 1)
        await expect(limiter.acquire(exhausted)).rejects.toThrow(RateLimitExceeded);
    });
    const unitsPerSecond = await formulaOfPage();
    const formula = unitsPerSecond({ calls: 5, processes: 1, entities: 31, exhausted: 1 });
    expectRow("simple API", { calls: 300, formula, measured, on: engine() });
  });

  it("a minute of an LLM gateway costs what the formula says", async () => {
    const process = await open();
    const { repository, limiter } = process;
    for (const project of ["project-0", "project-1"]) await repository.createEntity(project);
    for (let key = 0; key < 10; key += 1)
      await repository.createEntity(`key-${key}`, {
        parentId: `project-${key % 2}`,
        cascade: true,
      });
    const measured = await consumedInAMinute(process, async (second) => {
      for (let call = 0; call < 4; call += 1) {
        const number = ((second + WARM_UP) * 4 + call) % 20;
        // The last call of every tenth second is the first of a new key.
        const isNew = second % 10 === 8 && call === 3;
        const entityId = isNew ? `new-${second}` : `key-${number}`;
        const lease = await limiter.acquire({
          entityId,
          resource: "gpt",
          consume: { rpm: 1, tpm: 500 },
        });
        lease.settle({ tpm: 700 });
        await (number === 7 ? lease.rollback() : lease.commit());
      }
    });
    const unitsPerSecond = await formulaOfPage();
    const formula = unitsPerSecond({
      calls: 4,
      cascading: 0.5,
      changed: 1,
      newBuckets: 0.1,
      processes: 1,
      entities: 26,
      parents: 2,
    });
    expectRow("LLM gateway", { calls: 240, formula, measured, on: engine() });
  });

  it("the page says how large what is stored is", async () => {
    const { endpointUrl } = engine();
    const stack = freshTableName();
    const repository = await DynamoRepository.open("app", { stack, endpointUrl });
    closing.push(() => repository.close());
    const limits = [Limit.perMinute("rpmx", 100), Limit.perDay("tpmx", 1000)];
    await repository.setLimits("entity-0123456789abc", limits);
    const limiter = new RateLimiter({ repository });
    const call = { resource: "gpt-4o-mini1", consume: { rpmx: 1, tpmx: 100 } };
    await limiter.acquire({ ...call, entityId: "entity-0123456789abc" }, () => {});
    await runAggregator({ stack, endpointUrl, once: true });
    const lean = await openTransport("lean", engine());
    closing.push(async () => lean.close());
    const { signal } = new AbortController();
    const { Items } = (await lean.call("Scan", { TableName: stack }, { signal })) as {
      readonly Items: readonly AttributeMap[];
    };
    for (const [prefix, what] of [
      ["#USAGE#", "a snapshot"],
      ["#AUDIT#", "an event that sets two limits"],
      ["#CONFIG", "a level with two limits"],
    ] as const) {
      const sizes = Items.filter((item) => stringOf(item["SK"])!.startsWith(prefix)).map(itemBytes);
      const [, about] = new RegExp(`about (\\d+) bytes ${what}`).exec(page) ?? [];
      // Sequence numbers of the stream are in snapshots, and not equally long everywhere.
      for (const size of sizes)
        expect(Math.abs(size - Number(about)), what + size).toBeLessThan(30);
      expect(sizes.length).toBeGreaterThan(0);
    }
    const bucket = Items.find((item) => item["rf"] !== undefined)!;
    const keptDays = (numberOf(bucket["ttl"])! - numberOf(bucket["rf"])! / 1000) / 86_400;
    expect(Math.round(keptDays * 10) / 10, "seven times the longest fill time").toBe(7);
  });
});

/** The formula, the measurement and the page say the same. */
function expectRow(
  load: string,
  {
    calls,
    formula,
    measured,
    on,
  }: {
    readonly calls: number;
    readonly formula: Units;
    readonly measured: Units;
    readonly on: Engine;
  },
): void {
  const { write, read } = inAMinute(formula);
  expect(measured.write).toBe(write);
  // DynamoDB Local bills no read of an item that is not there; AWS does, and dynoxide too.
  if (on.name !== "dynoxide") return;
  expect(measured.read).toBe(read);
  const row = [load, calls, write, measured.write, read, measured.read].join(" | ");
  expect(page.includes(`| ${row} |`), `the page must have | ${row} |`).toBe(true);
}

function inAMinute({ write, read }: Units): Units {
  const [writes, reads] = [write, read].map((units) => Math.round(units * MINUTE * 1000) / 1000);
  return { write: writes!, read: reads! };
}
