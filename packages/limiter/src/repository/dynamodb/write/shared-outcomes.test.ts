import { describe, expect, it } from "vitest";
import { take } from "../../../../test/support/scripted-writes.ts";
import {
  scriptedProcess,
  type ScriptedProcess,
  type ScriptedTable,
} from "../../../../test/support/scripted-table.ts";
import { shardImage, shardItem, shardKey } from "../../../../test/support/shard-images.ts";
import { STATEMENT_FAULTS } from "../../../../test/support/statement-faults.ts";
import { getNumber, type AttributeMap } from "../transport/attribute-values.ts";
import type { WriteOutcome } from "./write-intent.ts";

const ENTITIES = ["a", "b", "c"];
const COST_MILLI = 7000;

const FULL_MILLI = 60_000;

/** Full buckets, which have every counter that a take adds to. */
const STORED = { requests: 1 };

describe("writes that share a request", () => {
  it("are one request, and each is charged what it takes", async () => {
    const process = openShared();
    expect(await takeAll(process)).toEqual(ENTITIES.map(() => "applied"));
    expect(process.table.operations).toEqual(["BatchExecuteStatement"]);
    expect(readCharged(process.table)).toEqual(ENTITIES.map(() => COST_MILLI));
  });

  // Taken for not applied, one that was applied would be charged twice; taken for applied, one that
  // was not would be granted for nothing.
  it.each(STATEMENT_FAULTS)("are each charged once when a statement suffers %s", async (fault) => {
    const process = openShared();
    process.table.statementFault = ({ PK }) => (PK.S.includes("#b#") ? fault : undefined);
    expect(await takeAll(process)).toEqual(ENTITIES.map(() => "applied"));
    expect(readCharged(process.table)).toEqual(ENTITIES.map(() => COST_MILLI));
    expect(process.table.operations[0]).toBe("BatchExecuteStatement");
    expect(process.table.operations.length).toBeGreaterThan(1);
  });

  it.each([0, 1, 2])("are each charged once when the reply lacks the place %i", async (missing) => {
    const process = openShared();
    // Another process was faster: this condition fails.
    process.table.put(shardItem({ ...STORED, entityId: "b", tokens: { tpm: 1000 } }));
    process.table.onReplies = (replies) => replies.toSpliced(missing, 1);
    expect(await takeAll(process)).toEqual(["applied", "refused", "applied"]);
    expect(readCharged(process.table)).toEqual([COST_MILLI, FULL_MILLI - 1000, COST_MILLI]);
  });

  it.each([
    ["has nothing in a place", [null, {}, {}]],
    ["has more places than statements", [{}, {}, {}, {}]],
    ["has no places", null],
  ])("are each charged once when the reply %s", async (_, places) => {
    const process = openShared();
    process.table.onReplies = () => places as never;
    expect(await takeAll(process)).toEqual(ENTITIES.map(() => "applied"));
    expect(readCharged(process.table)).toEqual(ENTITIES.map(() => COST_MILLI));
  });

  it("refuse who lost the last token to another process, and grant the others", async () => {
    const process = openShared();
    process.table.put(shardItem({ ...STORED, entityId: "b", tokens: { tpm: 1000 }, version: 6 }));
    expect(await takeAll(process)).toEqual(["applied", "refused", "applied"]);
    expect(readCharged(process.table)).toEqual([COST_MILLI, FULL_MILLI - 1000, COST_MILLI]);
  });

  it("know that a condition failed, though the item cannot be read afterwards", async () => {
    const process = openShared();
    process.table.statementFault = ({ PK }) => (PK.S.includes("#b#") ? "condition" : undefined);
    process.table.failReads(3);
    expect(await takeAll(process)).toEqual(ENTITIES.map(() => "applied"));
    expect(readCharged(process.table)).toEqual(ENTITIES.map(() => COST_MILLI));
    expect(process.observed.filter((what) => what.startsWith("throttled"))).toEqual([]);
  });
});

function openShared(): ScriptedProcess {
  const process = scriptedProcess({ shareRequests: true });
  for (const entityId of ENTITIES) {
    process.table.put(shardItem({ ...STORED, entityId }));
    process.known.remember(
      shardKey(0, entityId),
      shardImage({ ...STORED, entityId }),
      process.known.stampRequest(),
    );
  }
  return process;
}

async function takeAll({ writer }: ScriptedProcess): Promise<readonly WriteOutcome["kind"][]> {
  const outcomes = ENTITIES.map((entityId) =>
    writer.write(shardKey(0, entityId), take(COST_MILLI)),
  );
  return (await Promise.all(outcomes)).map(({ kind }) => kind);
}

/** What is missing in the bucket of each entity. */
function readCharged({ items }: ScriptedTable): readonly number[] {
  return [...items.values()].map((item: AttributeMap) => FULL_MILLI - getNumber(item["b_tpm_tk"])!);
}
