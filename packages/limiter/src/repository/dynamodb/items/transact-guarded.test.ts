import { ApplyConflictError } from "zae-limiter";
import { expect, it } from "vitest";
import type { Connection, Transacted, TransactItem } from "../table/connection.ts";
import { transactGuarded } from "./transact-guarded.ts";

const WRITES: readonly TransactItem[] = [{ Put: {} }, { Delete: {} }];

/** Answers as DynamoDB does while other transactions run, which no local engine does. */
function cancelledFor(...codes: readonly string[]): {
  readonly connection: Connection;
  readonly sent: (readonly TransactItem[])[];
} {
  const sent: (readonly TransactItem[])[] = [];
  const transact = async (items: readonly TransactItem[]): Promise<Transacted> => {
    sent.push(items);
    if (codes.length === 0) return { applied: true };
    return { applied: false, reasons: codes.map((code) => ({ code, item: undefined })) };
  };
  return { connection: { transact } as unknown as Connection, sent };
}

it("a failed check of the revision is told apart from the conditions of the writes", async () => {
  for (const [codes, isConflict] of [
    [["None", "None", "ConditionalCheckFailed"], true],
    [["ConditionalCheckFailed", "None", "ConditionalCheckFailed"], true],
    [["TransactionConflict", "None", "ConditionalCheckFailed"], true],
    [["ConditionalCheckFailed", "None", "None"], false],
    [["None", "ConditionalCheckFailed", "TransactionConflict"], false],
  ] as const) {
    const { connection } = cancelledFor(...codes);
    const outcome = transactGuarded(connection, "ns", WRITES, { ifRevision: 3 });
    if (isConflict) await expect(outcome).rejects.toThrow(ApplyConflictError);
    else expect(await outcome).toMatchObject({ applied: false });
  }
});

it("without a revision nothing is added, and without writes only the revision is checked", async () => {
  const { connection, sent } = cancelledFor();
  await transactGuarded(connection, "ns", WRITES, { ifRevision: undefined });
  await transactGuarded(connection, "ns", [], { ifRevision: undefined });
  expect(sent).toEqual([WRITES]);
  await transactGuarded(connection, "ns", [], { ifRevision: 3 });
  expect(sent[1]).toMatchObject([{ ConditionCheck: { ConditionExpression: "#n0 = :v0" } }]);
  expect(sent).toHaveLength(2);
});
