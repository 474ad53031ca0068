import { DynamoRepository, type DynamoTransport } from "zae-limiter/dynamodb";
import { seededRandom } from "zae-limiter/testing";
import type { Backend } from "./client.ts";

/**
 * One table; each run has a namespace of its own, and each client images and caches of its own, as
 * a process has. Clients of one run take the transports in turn, so that every promise is kept over
 * each of them and between them.
 */
export function dynamoBackend({
  transports,
  stack,
}: {
  readonly transports: readonly DynamoTransport[];
  readonly stack: string;
}): Backend {
  let runs = 0;
  let opened = 0;
  return {
    name: "DynamoDB",
    separate: true,
    loose: true,
    recordsUsage: false,
    begin: () => {
      const namespace = `run-${(runs += 1)}`;
      let clients = 0;
      return {
        open: (clock) =>
          DynamoRepository.open(namespace, {
            stack,
            transport: transports[clients++ % transports.length]!,
            provisioning: "table",
            stream: false,
            // Nobody moves the clock while a step is under way, so a pause between two attempts
            // must not wait for it.
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
