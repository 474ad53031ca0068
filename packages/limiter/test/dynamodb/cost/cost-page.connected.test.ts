import { afterEach, expect, it } from "vitest";
import { Limit, RateLimitExceeded, type AcquireRequest } from "zae-limiter";
import type { DynamoOptions } from "zae-limiter/dynamodb";
import { ManualClock } from "zae-limiter/testing";
import { describeWithEngine, freshTableName } from "../../support/engine.ts";
import { expectOnPage, HEADER, measureBucket, openAccount, type Account } from "./account.ts";

const START_MS = Date.UTC(2030, 0, 1);
const RESOURCE = "gpt-4o-mini1";
const NAMES = ["rpmx", "tpmx", "rpdx", "tpdx", "ipmx", "opmx", "cpmx", "spmx"];

/**
 * The tables of the page on cost are what the engine measures; a changed number shows here, with
 * the line that the page must have.
 */
describeWithEngine("the guide's page on cost", (engine) => {
  const closing: (() => Promise<void>)[] = [];
  afterEach(async () => {
    for (const close of closing.splice(0)) await close();
  });

  async function open(options: DynamoOptions & { readonly stack: string }): Promise<Account> {
    const account = await openAccount(engine(), options);
    closing.push(() => account.repository.close());
    return account;
  }

  it("the page says what every operation costs, an acquire after the refill of another process too [W-76]", async () => {
    const clock = new ManualClock(START_MS);
    const stack = freshTableName();
    const { repository, limiter, row } = await open({ clock, stack });
    await repository.setSystemDefaults(
      NAMES.slice(0, 6).map((name) => Limit.perMinute(name, 1_000_000)),
    );
    await repository.createEntity("parent-0123456789abc");
    await repository.createEntity("child-0123456789abcd", {
      parentId: "parent-0123456789abc",
      cascade: true,
    });
    const six = Object.fromEntries(NAMES.slice(0, 6).map((name) => [name, 100]));
    const acquire = async (entityId: string, more: Partial<AcquireRequest> = {}) =>
      limiter.acquire({ entityId, resource: RESOURCE, consume: six, ...more });

    const rows = [
      await row("first acquire of an entity that this process has never seen", () =>
        acquire("entity-0123456789abc"),
      ),
    ];
    rows.push(
      await row(
        "first acquire of a known entity on a resource that this process has never seen",
        () => acquire("entity-0123456789abc", { resource: "another" }),
      ),
    );
    await limiter.available("entity-0123456789abc", "third");
    rows.push(
      await row("first acquire of a known entity on a new bucket, its limits in the cache", () =>
        acquire("entity-0123456789abc", { resource: "third" }),
      ),
    );
    await clock.advance(1234);
    rows.push(
      await row("acquire, one to six limits, refill included", () =>
        acquire("entity-0123456789abc"),
      ),
    );
    const [equal, more, back] = [
      await acquire("entity-0123456789abc"),
      await acquire("entity-0123456789abc"),
      await acquire("entity-0123456789abc"),
    ];
    rows.push(await row("commit without a difference", () => equal.commit()));
    more.settle({ tpmx: 500 });
    rows.push(await row("commit with a difference", () => more.commit()));
    rows.push(await row("rollback", () => back.rollback()));
    const also = { another: six };
    rows.push(
      await row("acquire of two resources", () => acquire("entity-0123456789abc", { also })),
    );
    await acquire("child-0123456789abcd");
    await clock.advance(1234);
    rows.push(
      await row("acquire that cascades to the parent", () => acquire("child-0123456789abcd")),
    );
    const cascaded = await acquire("child-0123456789abcd");
    cascaded.settle({ tpmx: 500 });
    rows.push(await row("commit of it with a difference", () => cascaded.commit()));
    const charge = (entityId: string): Promise<void> =>
      limiter.charge({ entityId, resource: RESOURCE, amounts: six });
    rows.push(await row("`charge`", () => charge("entity-0123456789abc")));
    rows.push(await row("`charge` that cascades", () => charge("child-0123456789abcd")));
    const together = async (): Promise<unknown> =>
      Promise.all(Array.from({ length: 64 }, () => acquire("entity-0123456789abc")));
    rows.push(await row("64 acquires of one bucket at once, together", together));
    const other = await open({ clock, stack });
    await other.limiter.acquire({
      entityId: "entity-0123456789abc",
      resource: RESOURCE,
      consume: six,
    });
    await clock.advance(1234);
    await other.limiter.acquire({
      entityId: "entity-0123456789abc",
      resource: RESOURCE,
      consume: six,
    });
    rows.push(
      await row("acquire after another process refilled the bucket", () =>
        acquire("entity-0123456789abc"),
      ),
    );
    const tooMuch = { consume: { tpmx: 1_000_001 } };
    const refused = async (): Promise<void> =>
      expect(acquire("entity-0123456789abc", tooMuch)).rejects.toThrow(RateLimitExceeded);
    rows.push(
      await row("refusal by what this process has learnt within `refusalMemoryMs`", refused),
    );
    await clock.advance(1000);
    rows.push(await row("refusal by what is older", refused));
    rows.push(await row("`available`", () => limiter.available("entity-0123456789abc", RESOURCE)));
    rows.push(
      await row("`available` with a parent", () =>
        limiter.available("child-0123456789abcd", RESOURCE),
      ),
    );
    // DynamoDB Local, which may be behind an endpoint of any name, bills no read of an item that is
    // not there; AWS does, and dynoxide too.
    const compared = engine().name === "dynoxide" ? 6 : 5;
    expectOnPage(HEADER, rows, compared);
  });

  it("the page says how large items are", async () => {
    const counts = [1, 2, 4, 6, 8];
    const lengths = [4, 8, 16, 32];
    const rows: string[][] = [];
    for (const count of counts) {
      const sizes: string[] = [];
      for (const length of lengths)
        sizes.push(String(await measureSize(count, length, { entity: 20, resource: 12 })));
      rows.push([String(count), ...sizes]);
    }
    expectOnPage(["limits", ...lengths.map((length) => `names of ${length}`)], rows);
    const long: string[][] = [];
    for (const entity of [20, 40, 80])
      long.push([String(entity), String(await measureSize(2, 4, { entity, resource: 12 }))]);
    expectOnPage(["entity id", "bytes"], long);
  });

  /**
   * The size of a bucket in the middle of its life: charged, refilled, with remainders and one
   * operation id.
   */
  async function measureSize(
    count: number,
    nameLength: number,
    ids: { readonly entity: number; readonly resource: number },
  ): Promise<number> {
    const clock = new ManualClock(START_MS);
    const account = await open({ clock, stack: freshTableName() });
    const { repository, limiter } = account;
    const names = NAMES.slice(0, count).map((name) => name.padEnd(nameLength, "-x"));
    await repository.setSystemDefaults(names.map((name) => Limit.perMinute(name, 1_000_000)));
    const consume = Object.fromEntries(names.map((name) => [name, 12_345]));
    const [entityId, resource] = [
      "entity".padEnd(ids.entity, "0"),
      "gpt".padEnd(ids.resource, "0"),
    ];
    for (let call = 0; call < 3; call += 1) {
      await limiter.acquire({ entityId, resource, consume });
      await clock.advance(7);
    }
    return measureBucket(account);
  }
});
