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

/** The columns that `row` fills. */
export const HEADER = ["operation", "requests", "round trips", "WCU", "of it indexes", "RCU"];

/** A repository whose requests and units are counted. */
export interface Account {
  readonly repository: DynamoRepository;
  readonly limiter: RateLimiter;
  readonly transport: MeteredTransport;
  /** What one operation cost, as a row of the page. */
  readonly row: (operation: string, work: () => Promise<unknown>) => Promise<string[]>;
}

/** Opens a table of its own on an engine. */
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
    const indexes = sum(write.indexes);
    // AWS bills failed conditions; the engines' replies do not say.
    return [
      operation,
      ...[
        requests,
        trips.count,
        write.table + indexes + failedConditions,
        indexes,
        read.table + sum(read.indexes),
      ].map(String),
    ];
  };
  return { repository, limiter: new RateLimiter({ repository }), transport, row };
}

/**
 * Expects a table of the page, or its first columns. The formatter may pad cells, so their texts
 * are compared.
 */
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

function sum(units: Readonly<Record<string, number>>): number {
  return Object.values(units).reduce((total, each) => total + each, 0);
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
