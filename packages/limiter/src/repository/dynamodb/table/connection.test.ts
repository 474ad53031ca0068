import { expect, it } from "vitest";
import { RateLimiterUnavailable } from "../../../core/errors.ts";
import { Connection } from "./connection.ts";

it("a connection that was closed sends nothing, and does not pause to try again", async () => {
  const calls: string[] = [];
  const connection = new Connection({
    transport: { call: async (operation) => ({ sent: calls.push(operation) }), close: () => {} },
    tableName: "limits",
    clock: { now: () => 0, sleep: async () => void calls.push("sleep") },
    random: () => 0.5,
    requestTimeoutMs: 2000,
    maxAttempts: 100,
  });
  connection.close();
  await expect(connection.repeat("GetItem", {})).rejects.toThrow(RateLimiterUnavailable);
  await expect(connection.transact([])).rejects.toThrow(/is closed/);
  expect(calls).toEqual([]);
});
