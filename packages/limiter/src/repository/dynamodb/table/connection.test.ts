import { expect, it } from "vitest";
import { PermissionDenied, RateLimiterUnavailable } from "../../../core/errors.ts";
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

it("a search for credentials that fails after the time-out is not a time-out", async () => {
  const connection = new Connection({
    // As the SDK does: it notices the signal when it has looked everywhere.
    transport: {
      call: async (_operation, _input, { signal }) => {
        await new Promise((resolve) => signal.addEventListener("abort", resolve));
        throw Object.assign(new Error("none were found"), { name: "CredentialsProviderError" });
      },
      close: () => {},
    },
    tableName: "limits",
    clock: { now: () => 0, sleep: () => expect.fail("it tries again") },
    random: () => 0.5,
    requestTimeoutMs: 5,
    maxAttempts: 3,
  });
  await expect(connection.repeat("GetItem", {})).rejects.toThrow(PermissionDenied);
});
