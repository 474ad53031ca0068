import { DynamoDBStreamsClient } from "@aws-sdk/client-dynamodb-streams";
import type { Random } from "zae-limiter";
import { DynamoRepository, type DynamoTransport } from "zae-limiter/dynamodb";
import { ManualClock, seededRandom } from "zae-limiter/testing";
import { connect } from "../../support/connect.ts";
import type { CoverageCounts } from "../../support/seeded/coverage-counts.ts";
import { pick } from "../../support/seeded/random-choice.ts";
import {
  startStreamProxy,
  type StreamFault,
  type StreamProxy,
} from "../../support/stream-proxy.ts";
import type { Situation } from "./client.ts";
import { playHistory } from "./history.ts";
import type { Sum } from "./ledger.ts";
import { PhaseTimes } from "./phase-times.ts";
import { UsageTable } from "./usage-table.ts";

/** A table that clients have used, with a stream that is still to be counted. */
export interface PlayedHistory {
  readonly table: UsageTable;
  /** In front of the stream; it lets some requests of the streams API fail. */
  readonly proxy: StreamProxy;
  readonly streams: DynamoDBStreamsClient;
  /** What the windows must hold. */
  readonly expected: Readonly<Record<string, Sum>>;
  readonly random: Random;
}

/** How a history is made. */
export interface PlayedHistoryOptions {
  readonly endpointUrl: string;
  /** Clients take them in turn. */
  readonly transports: readonly DynamoTransport[];
  readonly coverage: CoverageCounts<Situation>;
  readonly seed: number;
  readonly clients: number;
  readonly rounds: number;
  /** Is called when the table exists, before clients use it. */
  readonly onTable?: (place: Pick<PlayedHistory, "table" | "proxy">) => void;
}

const FAULTS: readonly StreamFault[] = [
  "empty",
  "short",
  "again",
  "expired",
  "throttle",
  "internal",
  "lost-reply",
];

const REGION = "us-east-1";

/**
 * Clients act one after another, by a clock of the test, in every other seed: it happens again in
 * exactly the same way. In the others they act at once.
 */
export function isReplayable(seed: number): boolean {
  return seed % 2 === 1;
}

/** Lets clients make a history on a new table, and passes it on. */
export async function withHistory(
  options: PlayedHistoryOptions,
  use: (played: PlayedHistory) => Promise<void>,
): Promise<void> {
  const { endpointUrl, seed } = options;
  const random = seededRandom(seed);
  const faults = seededRandom(-seed);
  const times = new PhaseTimes(Date.now());
  const { connection, tableName } = await connect(endpointUrl);
  const table = new UsageTable(connection);
  const proxy = await startStreamProxy(endpointUrl, {
    shards: 3,
    isExpiry: ({ PK }) => table.expired.has((PK as { S: string }).S),
    getTime: (record) => times.getTime(record),
  });
  const streams = new DynamoDBStreamsClient({
    endpoint: proxy.endpointUrl,
    region: REGION,
    credentials: { accessKeyId: "key", secretAccessKey: "secret" },
    maxAttempts: 1,
  });
  const clock = new ManualClock(Date.now());
  const open = opener(options, tableName, clock);
  try {
    await (await open()).close();
    proxy.decide = () => (faults() < 0.2 ? pick(faults, FAULTS) : undefined);
    options.onTable?.({ table, proxy });
    const ledger = await playHistory({
      ...options,
      random,
      isConcurrent: !isReplayable(seed),
      pause: () => clock.set(clock.now() + Math.floor(random() * 3000)),
      times,
      table,
      proxy,
      open,
    });
    await use({ table, proxy, streams, expected: ledger.sums(), random });
  } finally {
    streams.destroy();
    connection.close();
    await proxy.stop();
  }
}

/** Opens repositories, each as a process of its own would. */
function opener(
  { transports, seed }: PlayedHistoryOptions,
  stack: string,
  clock: ManualClock,
): () => Promise<DynamoRepository> {
  let opened = 0;
  return () => {
    opened += 1;
    return DynamoRepository.open("app", {
      stack,
      transport: transports[opened % transports.length]!,
      provisioning: "table",
      random: seededRandom(1000 * seed + opened),
      ...(isReplayable(seed) && { clock: { now: () => clock.now(), sleep: async () => {} } }),
      // A change of configuration is seen by the next call.
      configCacheTtlMs: 0,
      requestTimeoutMs: 10_000,
    });
  };
}
