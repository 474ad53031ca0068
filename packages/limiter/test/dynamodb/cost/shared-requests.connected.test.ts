import { beforeAll, expect, it } from "vitest";
import { Limit } from "zae-limiter";
import { ManualClock, seededRandom } from "zae-limiter/testing";
import type { Receipt } from "../../../src/repository/port.ts";
import {
  bucketProcess,
  grant,
  requestFor,
  type BucketProcess,
} from "../../support/bucket-process.ts";
import { connectToNewTable } from "../../support/connect.ts";
import { describeWithEngine } from "../../support/engine.ts";

const CALLERS = 64;
const ENTITIES = 100;
const ROUNDS = 6;
const LIMITS = [Limit.perMinute("rpm", 1_000_000), Limit.perMinute("tpm", 1_000_000)];

describeWithEngine("what calls cost that share requests", (engine) => {
  let table: Awaited<ReturnType<typeof connectToNewTable>>;

  beforeAll(async () => {
    table = await connectToNewTable(engine().endpointUrl);
  });

  const open = (): BucketProcess =>
    bucketProcess({
      ...table,
      clock: new ManualClock(),
      seed: 1,
      config: ({ level }) => ({ limits: level === "system" ? LIMITS : undefined }),
      requestTimeoutMs: 10_000,
    });

  it("64 callers on many entities need at most 0.1 requests an acquire, and a unit for each write", async () => {
    const process = open();
    const random = seededRandom(7);
    const take = (entity: number): Promise<Receipt> =>
      grant(process, requestFor(`e-${entity}`, { rpm: 1, tpm: 10 }));
    await Promise.all(Array.from({ length: ENTITIES }, (_, entity) => take(entity)));
    process.transport.reset();
    const before = process.counts.writes;
    await Promise.all(
      Array.from({ length: CALLERS }, async () => {
        for (let round = 0; round < ROUNDS; round += 1) await take(Math.floor(random() * ENTITIES));
      }),
    );
    const { requests, write, failedConditions } = process.transport.counts();
    expect(requests).toBeLessThanOrEqual(0.1 * CALLERS * ROUNDS);
    const writes = process.counts.writes - before;
    expect([write.table, failedConditions]).toEqual([writes, 0]);
    expect(Object.values(write.indexes).every((units) => units === 0)).toBe(true);
    // Most calls have a write of their own: they share requests, not writes.
    expect(writes).toBeGreaterThan((CALLERS * ROUNDS) / 2);
    expect(process.counts.batchedOperations).toBe(ENTITIES + CALLERS * ROUNDS);
  });
});
