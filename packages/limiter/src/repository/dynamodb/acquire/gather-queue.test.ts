import { describe, expect, it } from "vitest";
import {
  createError,
  scriptedProcess,
  type ScriptedProcess,
} from "../../../../test/support/scripted-table.ts";
import {
  NOW_MS,
  shardImage,
  shardItem,
  shardKey,
  TPM,
} from "../../../../test/support/shard-images.ts";
import { inMilli } from "../../../core/amounts.ts";
import { Limit } from "../../../core/limit.ts";
import { buildPolicy } from "../../../core/bucket/policy.ts";
import type { PolicySource } from "../../store.ts";
import { TableUnavailable } from "../table/table-errors.ts";
import { PolicyResolver } from "../cache/policy-resolver.ts";
import { GatherQueue } from "./gather-queue.ts";
import type { TakeAttempt } from "./take.ts";
import type { WantedClaim } from "./wanted-claim.ts";

const POLICY = buildPolicy([TPM], "resource");
const CANCELLED = createError("TransactionCanceledException", {
  CancellationReasons: [{ Code: "ConditionalCheckFailed" }, { Code: "None" }],
});

describe("gathers from one bucket", () => {
  it("carry all who waited for the one before, in one transaction each", async () => {
    const { queue, table, known } = gathering([900, 900, 900, 900]);
    const outcomes = [1, 2, 3].map(() => queue.take(wanting(1), startAttempt(known)));
    for (const outcome of await Promise.all(outcomes))
      expect(outcome).toMatchObject({ kind: "taken" });
    expect(table.operations).toEqual([
      "BatchGetItem",
      "TransactWriteItems",
      "BatchGetItem",
      "TransactWriteItems",
    ]);
  });

  it("decide those again who did not fit after the others: refused as of their begin", async () => {
    const { queue, table, known, clock } = gathering([600, 600]);
    const calls = [1, 2, 3].map(() => queue.take(wanting(1), startAttempt(known)));
    // The first goes alone. While the second is under way a token is earned, and not credited.
    table.faults.push(
      {},
      {
        before: () => {
          store(table, [100, 100]);
          clock.set(NOW_MS + 60_000);
        },
      },
    );
    const kinds = (await Promise.all(calls)).map(({ kind }) => kind);
    expect(kinds).toEqual(["taken", "taken", "refused"]);
  });

  it("leave it to another round when another process was faster, after a read for all of them", async () => {
    const { queue, table, known } = gathering([600, 600]);
    table.faults.push({ instead: CANCELLED });
    const attempt = startAttempt(known);
    expect(await queue.take(wanting(1), attempt)).toMatchObject({ kind: "undecided" });
    expect(attempt.isLate).toBe(true);
    expect(table.operations).toEqual(["BatchGetItem", "TransactWriteItems", "BatchGetItem"]);
  });

  it("refuse by what another process has left", async () => {
    const { queue, table, known } = gathering([600, 600]);
    table.faults.push({ before: () => store(table, [100, 100]), instead: CANCELLED });
    expect(await queue.take(wanting(1), startAttempt(known))).toMatchObject({
      kind: "refused",
      atMs: NOW_MS,
    });
  });

  it("send a call to the shard that holds it alone", async () => {
    const { queue, table, known } = gathering([600, 1000]);
    expect(await queue.take(wanting(1), startAttempt(known))).toMatchObject({ kind: "undecided" });
    expect(table.operations).toEqual(["BatchGetItem"]);
  });

  it("read nothing when all shards were read since the call began", async () => {
    const { queue, table, known } = gathering([600, 600]);
    const attempt = startAttempt(known);
    await known.readAll(shardKey());
    expect(await queue.take(wanting(1), attempt)).toMatchObject({ kind: "taken" });
    expect(table.operations).toEqual(["BatchGetItem", "TransactWriteItems"]);
  });

  it("read again when the last of them began after the last read", async () => {
    const { queue, table, known } = gathering([100, 100]);
    const first = queue.take(wanting(1), startAttempt(known));
    while (table.operations.length === 0) await Promise.resolve();
    const others = [{ ...startAttempt(known), begun: 1 }, startAttempt(known)];
    await Promise.all([first, ...others.map((attempt) => queue.take(wanting(1), attempt))]);
    expect(table.operations).toEqual(["BatchGetItem", "BatchGetItem"]);
  });

  it("wait for a tick that doubles with every transaction that is cancelled, and shrinks otherwise", async () => {
    const { queue, table, known, clock } = gathering([600, 600]);
    const waits: number[] = [];
    for (const isCancelled of [true, true, true, false, false]) {
      const beforeMs = clock.now();
      if (isCancelled) table.faults.push({ instead: CANCELLED });
      await queue.take(wanting(1), startAttempt(known));
      waits.push(clock.now() - beforeMs);
    }
    expect(waits).toEqual([0, 2, 4, 8, 7]);
    clock.set(clock.now() + 3);
    const beforeMs = clock.now();
    await queue.take(wanting(1), startAttempt(known));
    expect(clock.now() - beforeMs).toBe(3);
  });

  it("never wait where the clock is not to be rounded, or time went backwards", async () => {
    const exact = gathering([600, 600], 1);
    for (let times = 0; times < 3; times += 1) {
      exact.table.faults.push({ instead: CANCELLED });
      await exact.queue.take(wanting(1), startAttempt(exact.known));
    }
    expect(exact.clock.now()).toBe(NOW_MS);
    const { queue, table, known, clock } = gathering([600, 600]);
    table.faults.push({ instead: CANCELLED });
    await queue.take(wanting(1), startAttempt(known));
    clock.set(NOW_MS - 1000);
    await queue.take(wanting(1), startAttempt(known));
    expect(clock.now()).toBe(NOW_MS - 1000);
  });

  it("wait when they serve fewer calls than they write to shards, and not all that wait", async () => {
    const { queue, known, clock } = gathering([600, 600]);
    const calls = (count: number): Promise<unknown> =>
      Promise.all(Array.from({ length: count }, () => queue.take(wanting(1), startAttempt(known))));
    // A call that comes alone is always served, however many shards it needs.
    await calls(1);
    await calls(1);
    expect(clock.now()).toBe(NOW_MS);
    await calls(3);
    await calls(1);
    expect(clock.now()).toBe(NOW_MS + 2);
  });

  it("reject a call whose shards are all throttled, and one whose limits cannot be read", async () => {
    const { queue, known } = gathering([600, 600]);
    const throttled = new TableUnavailable("Too fast.", { throttled: true });
    const barred = { ...startAttempt(known), throttled: new Map([[shardKey(1).text, throttled]]) };
    const other = buildPolicy([Limit.perMinute("tpm", 61)], "resource");
    const outcomes = await Promise.allSettled([
      queue.take(wanting(1), startAttempt(known)),
      queue.take(wanting(1), barred),
      queue.take({ ...wanting(1), policy: other }, startAttempt(known)),
      queue.take(wanting(1), startAttempt(known)),
    ]);
    expect(outcomes).toMatchObject([
      { status: "fulfilled", value: { kind: "taken" } },
      { status: "rejected", reason: throttled },
      { status: "rejected", reason: { message: "limits away" } },
      { status: "fulfilled", value: { kind: "taken" } },
    ]);
  });
});

/** A queue over a bucket whose shards hold so many millitokens. */
function gathering(
  tokens: readonly number[],
  largestTickMs = 100,
): ScriptedProcess & { readonly queue: GatherQueue } {
  const process = scriptedProcess();
  store(process.table, tokens);
  tokens.forEach((tpm, shard) => {
    const image = shardImage({ shard, divisor: tokens.length, tokens: { tpm } });
    process.known.remember(shardKey(shard), image, process.known.stampRequest());
  });
  const source = {
    refresh: async () => Promise.reject(new Error("limits away")),
    getCached: () => undefined,
  } as unknown as PolicySource;
  const resolver = new PolicyResolver(source, process.known, () => false);
  const mergeMonitor = { noteWrite: () => {} };
  return {
    ...process,
    queue: new GatherQueue({ ...process, resolver, mergeMonitor, largestTickMs }),
  };
}

function store(table: ScriptedProcess["table"], tokens: readonly number[]): void {
  tokens.forEach((tpm, shard) =>
    table.put(shardItem({ shard, divisor: tokens.length, tokens: { tpm } })),
  );
}

function startAttempt(known: ScriptedProcess["known"]): TakeAttempt {
  const { order } = known.stampRequest();
  return {
    requests: 1,
    begun: order,
    begunMs: NOW_MS,
    throttled: new Map(),
    wantsHome: false,
    isLate: false,
  };
}

function wanting(tpm: number): WantedClaim {
  const amounts = { tpm };
  return {
    key: shardKey(),
    amounts,
    costs: inMilli(amounts),
    policy: POLICY,
    parentId: undefined,
    isCascaded: false,
  };
}
