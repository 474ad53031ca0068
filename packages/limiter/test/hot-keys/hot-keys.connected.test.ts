import { beforeAll, expect, it } from "vitest";
import { Connection } from "../../src/repository/dynamodb/connection.ts";
import { sdkTransport } from "../../src/repository/dynamodb/sdk-transport.ts";
import { createTable } from "../../src/repository/dynamodb/table.ts";
import type { DynamoTransport } from "../../src/repository/dynamodb/transport.ts";
import { systemClock, systemRandom } from "../../src/repository/system-clock.ts";
import { describeWithEngine, freshTableName } from "../dynamodb/engine.ts";
import { runSeeds } from "./run.ts";

const SEEDS = Number(process.env["SEEDS"] ?? (process.env["ZAEL_REQUIRE_ENGINES"] === "1" ? 400 : 50));

describeWithEngine("several processes on one hot bucket, with the network in any order", (engine) => {
  let transport: DynamoTransport;
  const tableName = freshTableName();

  beforeAll(async () => {
    ({ transport } = await sdkTransport({ region: "eu-west-1", endpointUrl: engine().endpointUrl }));
    const options = { transport, tableName, clock: systemClock, random: systemRandom, requestTimeoutMs: 5000, maxAttempts: 3 };
    await createTable(new Connection(options), { stream: false });
  });

  it(`keep every promise, over ${SEEDS} seeds`, { timeout: 900_000 }, async () => {
    const situations = await runSeeds({ transport, tableName }, { first: Number(process.env["SEED"] ?? 1), count: SEEDS });
    console.log(`hot keys: ${SEEDS} seeds\n${situations.toString()}`);
    expect(situations.counts.get("grant")).toBeGreaterThan(0);
  });
});
