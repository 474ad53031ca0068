import { DynamoRepository, type DynamoTransport } from "zae-limiter/dynamodb";
import { seededRandom } from "zae-limiter/testing";
import { StreamDrain } from "../../support/stream-drain.ts";
import type { Backend } from "../../simulation/client.ts";

/**
 * Each run has a table of its own, whose stream is counted when usage is compared, and each client
 * images and caches of its own, as a process has. Clients of one run take the transports in turn,
 * and two of three share requests, so that every promise is kept with each of them and between
 * them.
 */
export function dynamoBackend({
  transports,
  newTableName,
}: {
  readonly transports: readonly DynamoTransport[];
  readonly newTableName: () => string;
}): Backend {
  let opened = 0;
  return {
    name: "DynamoDB",
    separate: true,
    loose: true,
    comparesUsage: "at the end",
    begin: () => {
      const stack = newTableName();
      let clients = 0;
      let drain: StreamDrain | undefined;
      return {
        open: (clock) => {
          // The clock does not move while a step is under way, so a pause between two attempts must
          // not wait for it.
          const steady = { now: () => clock.now(), sleep: async () => {} };
          const transport = transports[clients++ % transports.length]!;
          drain ??= new StreamDrain({ transport, tableName: stack, clock: steady });
          return DynamoRepository.open("run", {
            stack,
            transport: drain.watched(transport),
            provisioning: "table",
            stream: true,
            clock: steady,
            random: seededRandom((opened += 1)),
            // Over either transport.
            shareRequests: opened % 3 !== 0,
            // The engines delete by the real clock what expired by the simulated one.
            bucketTtlMultiplier: 0,
            configCacheTtlMs: 0,
            refusalMemoryMs: 0,
            requestTimeoutMs: 10_000,
          });
        },
      };
    },
  };
}
