import { readFileSync } from "node:fs";
import { expect } from "vitest";
import { RateLimiter } from "zae-limiter";
import { DynamoRepository, type DynamoOptions } from "zae-limiter/dynamodb";
import type { AttributeMap } from "../../../src/repository/dynamodb/transport/attribute-values.ts";
import { sdkTransport } from "../../../src/repository/dynamodb/transport/sdk-transport.ts";
import type { Engine } from "../../support/engine.ts";
import { itemBytes } from "../../support/item-bytes.ts";
import { MeteredTransport } from "../../support/metered-transport.ts";
import { RoundTrips } from "../../support/round-trips.ts";

const page = readFileSync(new URL("../../../../../docs/guide/cost.md", import.meta.url), "utf8");

/** What the columns of the page's table of costs are. */
export const COSTS = ["operation", "requests", "round trips", "WCU", "of it indexes", "RCU"];

/** A repository whose operations are measured. */
export interface Account {
  readonly repository: DynamoRepository;
  readonly limiter: RateLimiter;
  readonly transport: MeteredTransport;
  /** What one operation cost, as a row of the page. */
  readonly row: (operation: string, work: () => Promise<unknown>) => Promise<string[]>;
}

/** Opens one, on an engine. */
export async function openAccount(engine: Engine, options: DynamoOptions): Promise<Account> {
  const { transport: sdk } = await sdkTransport({
    endpointUrl: engine.endpointUrl,
    region: "us-east-1",
  });
  const trips = new RoundTrips(sdk);
  const transport = new MeteredTransport(trips, { measureCapacity: true });
  const repository = await DynamoRepository.open("app", {
    transport,
    provisioning: "table",
    stream: false,
    requestTimeoutMs: 10_000,
    ...options,
  });
  const row = async (operation: string, work: () => Promise<unknown>): Promise<string[]> => {
    transport.reset();
    trips.count = 0;
    await work();
    const { requests, read, write, failedConditions } = transport.counts();
    const indexes = Object.values(write.indexes).reduce((sum, units) => sum + units, 0);
    // AWS bills failed conditions; the engines' replies do not say.
    return [
      operation,
      ...[requests, trips.count, write.table + indexes + failedConditions, indexes, read.table].map(
        String,
      ),
    ];
  };
  return { repository, limiter: new RateLimiter({ repository }), transport, row };
}

/** Expects rows on the page. The formatter may pad cells, so their texts are compared. */
export function expectOnPage(
  header: readonly string[],
  rows: readonly (readonly string[])[],
  compared = header.length,
): void {
  const lines = page.split("\n").map((line) =>
    line
      .split("|")
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
  const start = lines.findIndex((cells) => cells.join("|") === header.join("|"));
  expect(
    start,
    `no table with ${header.join(", ")}; it must be:\n${[header, header.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n")}`,
  ).toBeGreaterThan(0);
  const shown = lines.slice(start + 2, start + 2 + rows.length);
  expect(shown.map((cells) => cells.slice(0, compared))).toEqual(
    rows.map((cells) => cells.slice(0, compared)),
  );
}

/** The size of the only bucket of a table. */
export async function measureBucket({ repository, transport }: Account): Promise<number> {
  const input = { TableName: repository.stackName };
  const { Items } = (await transport.call("Scan", input, {
    signal: AbortSignal.timeout(10_000),
  })) as {
    readonly Items: readonly AttributeMap[];
  };
  return itemBytes(Items.find((item) => item["rf"] !== undefined)!);
}
