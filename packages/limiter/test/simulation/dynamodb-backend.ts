import { DynamoRepository, type DynamoTransport } from "zae-limiter/dynamodb";
import { seededRandom } from "zae-limiter/testing";
import type { Backend } from "./client.ts";

/** One table; each run has a namespace of its own, and each client images and caches of its own, as a process has. */
export function dynamoBackend(options: { readonly transport: DynamoTransport; readonly stack: string }): Backend {
  let runs = 0;
  let opened = 0;
  return {
    name: "DynamoDB",
    separate: true,
    loose: true,
    recordsUsage: false,
    begin: () => {
      const namespace = `run-${(runs += 1)}`;
      return {
        open: (clock) =>
          DynamoRepository.open(namespace, {
            ...options,
            provisioning: "table",
            stream: false,
            // Nobody moves the clock while a step is under way, so a pause between two attempts must not wait for it.
            clock: { now: () => clock.now(), sleep: async () => {} },
            random: seededRandom((opened += 1)),
            // The engines delete by the real clock what expired by the simulated one.
            bucketTtlMultiplier: 0,
            configCacheTtlMs: 0,
            refusalMemoryMs: 0,
            requestTimeoutMs: 10_000,
          }),
      };
    },
  };
}
