import { afterEach, expect, it } from "vitest";
import { Limit } from "zae-limiter";
import { ManualClock } from "zae-limiter/testing";
import { bucketProcess, grant, requestFor } from "../../support/bucket-process.ts";
import { connectToNewTable } from "../../support/connect.ts";
import { describeWithEngine, freshTableName } from "../../support/engine.ts";
import { HEADER, expectOnPage, measureBucket, openAccount, type Account } from "./account.ts";

/** Shortly before midnight in Berlin: what is configured stays in the cache over it. */
const START_MS = Date.UTC(2030, 0, 1, 22, 59, 50);
const OVER_THE_END_MS = 30_000;
const RESOURCE = "gpt-4o-mini";
const ENTITY = "entity-012345678";

const rate = (name: string): Limit => Limit.perMinute(name, 1_000_000_000);
const quota = (name: string): Limit =>
  Limit.quota(name, 900_000_000_000, { every: "day", zone: "Europe/Berlin" });
const session = (name: string): Limit =>
  Limit.session(name, 900_000_000_000, { windowSeconds: 20 });

const OF_WINDOWS = ["of four rates and two quotas", ...HEADER.slice(1)];
const RATES = ["rpmx", "tpmx", "ipmx", "opmx"].map(rate);
const MIXES: readonly (readonly [string, readonly Limit[]])[] = [
  ["4 rates", RATES],
  ["4 rates, 1 quota", [...RATES, quota("tpdx")]],
  ["4 rates, 2 quotas", [...RATES, quota("tpdx"), quota("rpdx")]],
  [
    "2 rates, 2 quotas, 2 sessions",
    [...RATES.slice(2), ...["tpdx", "rpdx"].map(quota), ...["msgx", "msgy"].map(session)],
  ],
];

describeWithEngine("what quotas and sessions cost", (engine) => {
  const closing: (() => Promise<void>)[] = [];
  afterEach(async () => {
    for (const close of closing.splice(0)) await close();
  });

  async function open(stack: string, clock: ManualClock): Promise<Account> {
    const account = await openAccount(engine(), { stack, clock });
    closing.push(() => account.repository.close());
    return account;
  }

  /** Processes that have all written to one bucket, whose totals are long. */
  async function openWriters(limits: readonly Limit[], count: number): Promise<readonly Account[]> {
    const [stack, clock] = [freshTableName(), new ManualClock(START_MS)];
    const accounts: Account[] = [];
    for (let number = 0; number < count; number += 1) {
      const account = await open(stack, clock);
      if (number === 0) await account.repository.setSystemDefaults(limits);
      accounts.push(account);
      await acquire(account, limits, number === 0 ? 123_456_789 : 1);
      await clock.advance(7);
    }
    return accounts;
  }

  it("the page says how large buckets with windows are; four rates and two quotas of seven processes are below 1 KB", async () => {
    const rows: string[][] = [];
    for (const [title, limits] of MIXES) {
      const sizes: number[] = [];
      for (const writers of [1, 7, 8])
        sizes.push(await measureBucket((await openWriters(limits, writers))[0]!));
      rows.push([title, ...sizes.map(String)]);
      if (title === "4 rates, 2 quotas") expect(sizes[1]).toBeLessThanOrEqual(1024);
    }
    expectOnPage(["kinds of limits", "1 process", "7 processes", "8 processes"], rows);
  });

  it.each(MIXES.slice(1))(
    "an acquire is one request and one write unit, the opening of windows included: %s",
    async (title, limits) => {
      const [stack, clock] = [freshTableName(), new ManualClock(START_MS)];
      const [ours, theirs] = [await open(stack, clock), await open(stack, clock)];
      await ours.repository.setSystemDefaults(limits);
      for (const account of [ours, theirs]) await acquire(account, limits);
      await acquire(ours, limits);
      const rows = [await ours.row("acquire in open windows", () => acquire(ours, limits))];
      await clock.advance(OVER_THE_END_MS);
      rows.push(
        await ours.row("acquire that opens both windows", () => acquire(ours, limits)),
        await theirs.row("acquire after another process opened them", () =>
          acquire(theirs, limits),
        ),
        await theirs.row("the next one of that process", () => acquire(theirs, limits)),
      );
      if (title === MIXES[2]![0]) return expectOnPage(OF_WINDOWS, rows);
      expect(rows[1]!.slice(1)).toEqual(["1", "1", "1", "0", "0"]);
    },
  );

  it("an end costs each of eight processes at most one failed write, over 100 ends", async () => {
    const { transport, tableName } = await connectToNewTable(engine().endpointUrl);
    const quotas = ["a", "b"].map((name) =>
      Limit.quota(name, 1_000_000, { cron: "* * * * *", zone: "UTC" }),
    );
    const config = ({ level }: { readonly level: string }) => ({
      limits: level === "system" ? quotas : undefined,
    });
    const processes = Array.from({ length: 8 }, (_, number) => {
      const clock = new ManualClock(START_MS + number * 280);
      return { clock, ...bucketProcess({ transport, tableName, clock, seed: number, config }) };
    });
    const request = requestFor("e", { a: 2, b: 1 });
    for (const process of processes) await grant(process, request);
    for (let end = 1; end <= 100; end += 1) {
      const before = processes.map(({ counts }) => counts.failedConditions);
      // The first clock reaches the end 2 s before the last one does.
      for (const atMs of [-1500, 100]) {
        for (const [number, { clock }] of processes.entries())
          clock.set(START_MS + end * 60_000 + atMs + number * 280);
        await Promise.all(
          processes.map(async (process) => {
            const [receipt] = await Promise.all([grant(process, request), grant(process, request)]);
            await process.buckets.giveBack(receipt);
          }),
        );
      }
      const failed = processes.map(
        ({ counts }, number) => counts.failedConditions - before[number]!,
      );
      expect(Math.max(...failed), `end ${end}: ${failed}`).toBeLessThanOrEqual(1);
    }
  }, 120_000);
});

function acquire({ limiter }: Account, limits: readonly Limit[], each = 100): Promise<unknown> {
  const consume = Object.fromEntries(limits.map(({ name }) => [name, each]));
  return limiter.acquire({ entityId: ENTITY, resource: RESOURCE, consume }, () => {});
}
