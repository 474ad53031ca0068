import { afterEach, beforeEach, expect, it } from "vitest";
import { InfrastructureNotFoundError, RateLimiterUnavailable } from "../../../src/core/errors.ts";
import {
  batchGet,
  batchWrite,
  getKey,
  marshalKey,
  queryAll,
} from "../../../src/repository/dynamodb/table/batch.ts";
import { TableUnavailable } from "../../../src/repository/dynamodb/table/table-errors.ts";
import {
  createTable,
  deleteTable,
  tableDeclaration,
  tableExists,
} from "../../../src/repository/dynamodb/table/create-table.ts";
import {
  connect as connectWith,
  connectToNewTable,
  type ConnectedTable,
  type ConnectOptions,
} from "../../support/connect.ts";
import { script, startFaultProxy, type Fault, type FaultProxy } from "../../support/fault-proxy.ts";
import { describeWithTransports, openTransport } from "../../support/transports.ts";

const item = (sk: string): Record<string, { S: string }> => ({ PK: { S: "p" }, SK: { S: sk } });

describeWithTransports("a connection", (engine, transport) => {
  const connect = async (
    endpointUrl: string,
    options: ConnectOptions = {},
  ): Promise<ConnectedTable> => connectWith(endpointUrl, { transport, ...options });
  let proxy: FaultProxy;
  let table: ConnectedTable;

  beforeEach(async () => {
    proxy = await startFaultProxy(engine().endpointUrl);
    table = await connectToNewTable(proxy.endpointUrl, { transport });
  });

  afterEach(async () => {
    table.connection.close();
    await proxy.stop();
  });

  const put = async (sk: string): Promise<object> =>
    table.connection.call("PutItem", { Item: item(sk) });
  const stored = async (sk: string): Promise<boolean> =>
    (await batchGet(table.connection, [{ PK: "p", SK: sk }]))[0] !== undefined;

  it.each<[Fault, { ambiguous: boolean; applied: boolean }]>([
    ["lost-request", { ambiguous: true, applied: false }],
    ["lost-reply", { ambiguous: true, applied: true }],
    ["internal", { ambiguous: true, applied: false }],
    ["unavailable", { ambiguous: true, applied: false }],
    ["throttle", { ambiguous: false, applied: false }],
    ["throughput", { ambiguous: false, applied: false }],
    ["conflict", { ambiguous: false, applied: false }],
  ])(
    "a write that suffers %s is sent once, and its error says whether the outcome is known [W-54]",
    async (fault, { ambiguous, applied }) => {
      proxy.decide = script("PutItem", [fault]);
      const error = await put("x").catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(RateLimiterUnavailable);
      expect((error as TableUnavailable).ambiguous).toBe(ambiguous);
      expect(table.meter.counts().byOperation["PutItem"]).toBe(1);
      expect(proxy.seen.filter(({ operation }) => operation === "PutItem")).toHaveLength(1);
      expect(await stored("x")).toBe(applied);
    },
  );

  it.each<Fault>(["silence", "late-silence"])(
    "a write that suffers %s is given up after the request time-out",
    async (fault) => {
      const { connection } = await connect(proxy.endpointUrl, {
        tableName: table.connection.tableName,
        requestTimeoutMs: 50,
      });
      proxy.decide = script("PutItem", [fault]);
      const error = await connection
        .call("PutItem", { Item: item("x") })
        .catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({
        name: "RateLimiterUnavailable",
        ambiguous: true,
        timedOut: true,
      });
      connection.close();
    },
  );

  it("a caller that gives up gets its own reason", async () => {
    proxy.decide = script("PutItem", ["silence"]);
    const controller = new AbortController();
    const call = table.connection.call(
      "PutItem",
      { Item: item("x") },
      { signal: controller.signal },
    );
    controller.abort(new Error("enough"));
    await expect(call).rejects.toThrow("enough");
  });

  it("reads are repeated until the table answers, a bounded number of times", async () => {
    await put("x");
    proxy.decide = script("BatchGetItem", ["throttle", "lost-reply"]);
    expect(await stored("x")).toBe(true);
    proxy.decide = ({ operation }) => (operation === "BatchGetItem" ? "throttle" : undefined);
    table.meter.reset();
    await expect(stored("x")).rejects.toThrow(RateLimiterUnavailable);
    expect(table.meter.counts().requests).toBe(3);
  });

  it("a connection never takes an unprocessed key for a missing item [W-56]", async () => {
    await batchWrite(
      table.connection,
      [..."abcdef"].map((sk) => ({ put: item(sk) })),
    );
    proxy.decide = script("BatchGetItem", ["unprocessed", "half-unprocessed", "half-unprocessed"]);
    const found = await batchGet(
      table.connection,
      [..."abcxdef"].map((SK) => ({ PK: "p", SK })),
    );
    expect(found.map((one) => one && getKey(one).SK)).toEqual([
      "a",
      "b",
      "c",
      undefined,
      "d",
      "e",
      "f",
    ]);
  });

  it("a connection writes what a batch left unprocessed", async () => {
    proxy.decide = script("BatchWriteItem", ["half-unprocessed", "unprocessed"]);
    await batchWrite(
      table.connection,
      [..."abcdef"].map((sk) => ({ put: item(sk) })),
    );
    for (const sk of "abcdef") expect(await stored(sk)).toBe(true);
  });

  it("a batch that makes no progress is given up", async () => {
    const { connection } = await connect(proxy.endpointUrl, {
      tableName: table.connection.tableName,
      random: () => 0,
    });
    proxy.decide = () => "unprocessed";
    await expect(batchGet(connection, [{ PK: "p", SK: "a" }])).rejects.toThrow(
      "unprocessed 8 times",
    );
    connection.close();
  });

  it("a query reads all pages [W-60]", async () => {
    const names = [..."abcdefg"];
    await batchWrite(
      table.connection,
      names.map((sk) => ({ put: item(sk) })),
    );
    const query = { partition: "p", range: { from: "a", to: "g" }, limit: 3 };
    const found: string[] = [];
    for await (const one of queryAll(table.connection, query)) found.push(getKey(one).SK);
    expect(found).toEqual(names);
    expect(table.meter.counts().byOperation["Query"]).toBe(3);
  });

  it("a transaction is applied once although its answer was lost", async () => {
    proxy.decide = script("TransactWriteItems", ["lost-reply", "conflict", "in-progress"]);
    const increment = {
      Key: marshalKey({ PK: "p", SK: "n" }),
      UpdateExpression: "ADD #n0 :v0",
      ExpressionAttributeNames: { "#n0": "count" },
      ExpressionAttributeValues: { ":v0": { N: "1" } },
    };
    const { connection } = await connect(proxy.endpointUrl, {
      tableName: table.connection.tableName,
      maxAttempts: 4,
    });
    expect(await connection.transact([{ Update: increment }])).toEqual({ applied: true });
    const [found] = await batchGet(table.connection, [{ PK: "p", SK: "n" }]);
    expect(found!["count"]).toEqual({ N: "1" });
    connection.close();
  });

  it("the table is created as declared, with time to live, however often that is asked for", async () => {
    const { connection } = await connect(proxy.endpointUrl);
    expect(await tableExists(connection)).toBe(false);
    await createTable(connection, { stream: true });
    await createTable(connection, { stream: true });
    const { Table } = await connection.call<{
      Table: ReturnType<typeof tableDeclaration> & { LocalSecondaryIndexes?: unknown[] };
    }>("DescribeTable", {});
    const projections = Object.fromEntries(
      Table.GlobalSecondaryIndexes.map(({ IndexName, Projection }) => [
        IndexName,
        Projection.ProjectionType,
      ]),
    );
    expect(projections).toEqual({
      GSI1: "ALL",
      GSI2: "KEYS_ONLY",
      GSI3: "KEYS_ONLY",
      GSI4: "KEYS_ONLY",
    });
    expect(Table.StreamSpecification).toEqual({
      StreamEnabled: true,
      StreamViewType: "NEW_AND_OLD_IMAGES",
    });
    expect(Table.LocalSecondaryIndexes ?? []).toEqual([]);
    const ttl = await connection.call<{ TimeToLiveDescription: object }>("DescribeTimeToLive", {});
    expect(ttl.TimeToLiveDescription).toMatchObject({
      AttributeName: "ttl",
      TimeToLiveStatus: "ENABLED",
    });
    await deleteTable(connection);
    await deleteTable(connection);
    expect(await tableExists(connection)).toBe(false);
    await expect(
      connection.call("GetItem", { Key: marshalKey({ PK: "a", SK: "b" }) }),
    ).rejects.toThrow(InfrastructureNotFoundError);
    connection.close();
  });

  it("every answer brings the server's time, refusals included", async () => {
    const dates: (string | undefined)[] = [];
    const watched = await openTransport(transport, {
      endpointUrl: proxy.endpointUrl,
      onServerDate: (date) => dates.push(date),
    });
    const describeTable = async (TableName: string): Promise<object> =>
      watched.call("DescribeTable", { TableName }, { signal: AbortSignal.timeout(10_000) });
    await describeTable(table.connection.tableName);
    await expect(describeTable("no-such-table")).rejects.toThrow();
    expect(dates.map((date) => Number.isNaN(Date.parse(date ?? "")))).toEqual([false, false]);
    watched.close();
  });
});
