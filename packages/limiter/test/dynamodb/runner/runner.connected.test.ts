import { expect, it } from "vitest";
import { InfrastructureError, InfrastructureNotFoundError, Limit, RateLimiter } from "zae-limiter";
import { runAggregator } from "zae-limiter/aggregator";
import { DynamoRepository } from "zae-limiter/dynamodb";
import { systemClock, type Clock } from "../../../src/repository/system-clock.ts";
import {
  getNumber,
  getString,
  type AttributeMap,
} from "../../../src/repository/dynamodb/transport/attribute-values.ts";
import type { DynamoTransport } from "../../../src/repository/dynamodb/transport/transport.ts";
import { describeWithEngine, freshTableName, type Engine } from "../../support/engine.ts";
import { describeWithTransports, openTransport } from "../../support/transports.ts";

const TIMEOUT_MS = 60_000;
const WINDOWS = ["daily", "hourly", "monthly"];

/** A table with a stream and usage in it: each of four entities takes so many calls. */
async function usedTable(engine: Engine, calls: number, options: object = {}): Promise<UsedTable> {
  const { endpointUrl } = engine;
  const stack = freshTableName();
  const place = { stack, endpointUrl };
  const repository = await DynamoRepository.open(undefined, { ...place, ...options });
  await repository.setSystemDefaults([Limit.perMinute("rpm", 1000)]);
  const limiter = new RateLimiter({ repository });
  const use = async (count: number): Promise<void> => {
    for (let call = 0; call < count; call += 1)
      for (const entityId of ["a", "b", "c", "d"])
        await limiter.acquire({ entityId, resource: "gpt-4", consume: { rpm: 1 } }, () => {});
  };
  await use(calls);
  return { place, use, close: () => repository.close() };
}

interface UsedTable {
  readonly place: { readonly stack: string; readonly endpointUrl: string };
  readonly use: (calls: number) => Promise<void>;
  readonly close: () => Promise<void>;
}

async function listItems(transport: DynamoTransport, stack: string): Promise<AttributeMap[]> {
  const { signal } = new AbortController();
  const input = { TableName: stack, ConsistentRead: true };
  return ((await transport.call("Scan", input, { signal })) as { Items: AttributeMap[] }).Items;
}

/** What the snapshots hold: for each window, the calls of each entity. */
async function countedIn(transport: DynamoTransport, stack: string): Promise<object> {
  const counted: Record<string, Record<string, number>> = {};
  for (const item of await listItems(transport, stack)) {
    const [, , window] = /^#(USAGE)#(\w+)/.exec(getString(item["SK"])!) ?? [];
    if (window === undefined) continue;
    const entities = (counted[window] ??= {});
    const entityId = getString(item["entity_id"])!;
    entities[entityId] = (entities[entityId] ?? 0) + getNumber(item["u_rpm"])! / 1000;
  }
  return counted;
}

function all(calls: number): object {
  const entities = { a: calls, b: calls, c: calls, d: calls };
  return Object.fromEntries(WINDOWS.map((window) => [window, entities]));
}

/** Goes eight times as fast: a runner that looks for the end of a stream waits most of the time. */
function fastClock(): Clock {
  const fromMs = systemClock.now();
  return {
    now: () => fromMs + 8 * (systemClock.now() - fromMs),
    sleep: (ms, signal) => systemClock.sleep(ms / 8, signal),
  };
}

describeWithTransports("a runner on the stream of an engine", (engine, name) => {
  it("once: counts everything that was there, and ends", { timeout: TIMEOUT_MS }, async () => {
    const transport = await openTransport(name, engine());
    const { place, use, close } = await usedTable(engine(), 5);
    const once = { stack: place.stack, transport, once: true };
    const report = await runAggregator({ ...once, clock: fastClock() });
    expect(report).toMatchObject({ ended: "counted", counted: 20 });
    expect(await countedIn(transport, place.stack)).toEqual(all(5));
    await use(2);
    const again = await runAggregator({ ...once, clock: fastClock() });
    expect(again).toMatchObject({ ended: "counted", counted: 8 });
    expect(await countedIn(transport, place.stack)).toEqual(all(7));
    const leases = (await listItems(transport, place.stack)).filter((item) => "owner" in item);
    expect(leases).toEqual([]);
    transport.close();
    await close();
  });
});

describeWithEngine("runners on the stream of an engine", (engine) => {
  it("need a table, and a stream on it", { timeout: TIMEOUT_MS }, async () => {
    const missing = { stack: freshTableName(), endpointUrl: engine().endpointUrl, once: true };
    await expect(runAggregator(missing)).rejects.toThrow(InfrastructureNotFoundError);
    const misspelt = { ...missing, ones: true };
    await expect(runAggregator(misspelt)).rejects.toThrow("is not an option of runAggregator");
    const { place, close } = await usedTable(engine(), 0, { stream: false });
    const error: unknown = await runAggregator({ ...place, once: true }).catch((e: unknown) => e);
    expect(error).toBeInstanceOf(InfrastructureError);
    expect(error).toMatchObject({
      code: "ERR_LIMITER_STREAM_MISSING",
      message: expect.stringContaining("StreamViewType=NEW_AND_OLD_IMAGES"),
    });
    const transport = await openTransport("lean", engine());
    const keysOnly = { StreamEnabled: true, StreamViewType: "KEYS_ONLY" };
    const { signal } = new AbortController();
    const input = { TableName: place.stack, StreamSpecification: keysOnly };
    await transport.call("UpdateTable", input, { signal });
    await expect(runAggregator({ ...place, once: true })).rejects.toMatchObject({
      code: "ERR_LIMITER_STREAM_MISSING",
      message: expect.stringContaining("Disable that stream (StreamEnabled=false), then enable a"),
    });
    transport.close();
    await close();
  });
});
