import { expect, it } from "vitest";
import { scriptedProcess } from "../../../../test/support/scripted-table.ts";
import { shardItem, shardKey } from "../../../../test/support/shard-images.ts";
import { Splitter } from "./splitter.ts";

it("splits no shard beside shard 0, whose divisor is the count of all", async () => {
  const { table, connection, known } = scriptedProcess();
  for (const shard of [0, 1]) table.put(shardItem({ shard, divisor: 2 }));
  const splitter = new Splitter({ connection, known, maxShards: 32, counts: { splits: 0 } });
  // This table only notes transactions, so shard 0 stays as it is, and is tried again and again.
  await expect(splitter.splitInto(shardKey(), 4)).rejects.toThrow(/contention/);
  expect(table.operations).toContain("TransactWriteItems");
  expect(table.operations.join(" ")).not.toContain("TransactWriteItems TransactWriteItems");
});
