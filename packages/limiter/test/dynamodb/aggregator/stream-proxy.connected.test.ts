import {
  DescribeStreamCommand,
  DynamoDBStreamsClient,
  GetRecordsCommand,
  GetShardIteratorCommand,
  ListStreamsCommand,
  type _Record,
  type Shard,
} from "@aws-sdk/client-dynamodb-streams";
import { afterEach, beforeEach, expect, it } from "vitest";
import { createTable } from "../../../src/repository/dynamodb/table/create-table.ts";
import { connect, type ConnectedTable } from "../../support/connect.ts";
import { describeWithEngine } from "../../support/engine.ts";
import { startStreamProxy, type StreamProxy } from "../../support/stream-proxy.ts";

const PARTITIONS = 24;

describeWithEngine("the proxy in front of a stream", (engine) => {
  let proxy: StreamProxy;
  let client: DynamoDBStreamsClient;
  let table: ConnectedTable;
  let streamArn: string;

  beforeEach(async () => {
    proxy = await startStreamProxy(engine().endpointUrl, {
      shards: 3,
      isExpiry: ({ PK }) => PK !== undefined && "S" in PK && PK.S === "expired",
      timeOf: ({ dynamodb }) => Date.UTC(2026, 0, 1, Number(dynamodb.SequenceNumber)),
    });
    table = await connect(proxy.endpointUrl);
    await createTable(table.connection, { stream: true });
    client = new DynamoDBStreamsClient({
      endpoint: proxy.endpointUrl,
      region: "us-east-1",
      credentials: { accessKeyId: "key", secretAccessKey: "secret" },
      maxAttempts: 1,
    });
    const listed = await client.send(new ListStreamsCommand({ TableName: table.tableName }));
    streamArn = listed.Streams![0]!.StreamArn!;
  });
  afterEach(async () => {
    client.destroy();
    table.connection.close();
    await proxy.stop();
  });

  const put = async (PK: string, value = 0): Promise<unknown> =>
    table.connection.call("PutItem", {
      Item: { PK: { S: PK }, SK: { S: "s" }, value: { N: String(value) } },
    });
  const putAll = async (value: number): Promise<void> => {
    for (let index = 0; index < PARTITIONS; index += 1) await put(`p${index}`, value);
  };
  const shards = async (): Promise<readonly Shard[]> => {
    const described = await client.send(new DescribeStreamCommand({ StreamArn: streamArn }));
    return described.StreamDescription!.Shards!;
  };
  const begin = async (ShardId: string, after?: string): Promise<string> => {
    const position =
      after === undefined
        ? { ShardIteratorType: "TRIM_HORIZON" as const }
        : { ShardIteratorType: "AFTER_SEQUENCE_NUMBER" as const, SequenceNumber: after };
    const input = { StreamArn: streamArn, ShardId, ...position };
    return (await client.send(new GetShardIteratorCommand(input))).ShardIterator!;
  };
  const page = async (
    ShardIterator: string,
  ): Promise<{ readonly records: readonly _Record[]; readonly next: string | undefined }> => {
    const output = await client.send(new GetRecordsCommand({ ShardIterator, Limit: 5 }));
    return { records: output.Records!, next: output.NextShardIterator };
  };
  /** Everything of a shard, and whether it is closed. */
  const drain = async (
    ShardId: string,
  ): Promise<{ readonly records: readonly _Record[]; readonly isClosed: boolean }> => {
    const records: _Record[] = [];
    let iterator: string | undefined = await begin(ShardId);
    while (iterator !== undefined) {
      const { records: found, next } = await page(iterator);
      records.push(...found);
      if (found.length === 0 && next !== undefined) return { records, isClosed: false };
      iterator = next;
    }
    return { records, isClosed: true };
  };

  it("several shards hold each change once, and those of an item in order", async () => {
    await putAll(1);
    await putAll(2);
    const parts = [];
    for (const { ShardId } of await shards()) parts.push((await drain(ShardId!)).records);
    expect(parts).toHaveLength(3);
    for (const part of parts) expect(part.length).toBeGreaterThan(0);
    expect(parts.flat()).toHaveLength(2 * PARTITIONS);
    for (const part of parts) {
      const values = new Map<string, string[]>();
      for (const { dynamodb } of part) {
        const key = dynamodb!.Keys!["PK"]!.S!;
        values.set(key, [...(values.get(key) ?? []), dynamodb!.NewImage!["value"]!.N!]);
      }
      for (const each of values.values()) expect(each).toEqual(["1", "2"]);
    }
  });

  it("a shard that is split ends, and its children go on with its keys", async () => {
    await putAll(1);
    const [parent] = await shards();
    await proxy.split(table.tableName, parent!.ShardId!);
    await putAll(2);
    const described = await shards();
    const children = described.filter(({ ParentShardId }) => ParentShardId === parent!.ShardId);
    expect(children).toHaveLength(2);
    expect(described[0]!.SequenceNumberRange!.EndingSequenceNumber).toBeDefined();
    const before = await drain(parent!.ShardId!);
    expect(before.isClosed).toBe(true);
    const after = await Promise.all(children.map(({ ShardId }) => drain(ShardId!)));
    expect(after.map(({ isClosed }) => isClosed)).toEqual([false, false]);
    expect(after.flatMap(({ records }) => partitionsOf(records)).toSorted()).toEqual(
      partitionsOf(before.records).toSorted(),
    );
  });

  it("deletions show who made them, and records have the time that the test gives them", async () => {
    for (const PK of ["expired", "deleted"]) {
      await put(PK);
      const Key = { PK: { S: PK }, SK: { S: "s" } };
      await table.connection.call("DeleteItem", { Key });
    }
    const all = await Promise.all((await shards()).map(({ ShardId }) => drain(ShardId!)));
    const removed = all
      .flatMap(({ records }) => records)
      .filter(({ eventName }) => eventName === "REMOVE");
    const told = removed.map(({ dynamodb, userIdentity }) => [
      dynamodb!.Keys!["PK"]!.S,
      userIdentity?.PrincipalId,
      dynamodb!.ApproximateCreationDateTime!.getTime() ===
        Date.UTC(2026, 0, 1, Number(dynamodb!.SequenceNumber)),
    ]);
    expect(told).toHaveLength(2);
    expect(told).toContainEqual(["deleted", undefined, true]);
    expect(told).toContainEqual(["expired", "dynamodb.amazonaws.com", true]);
  });

  it("pages are empty, short or come again, and iterators fail, as the test decides", async () => {
    await putAll(1);
    const [{ ShardId }] = (await shards()) as [Shard];
    const all = (await drain(ShardId!)).records;
    const first = await begin(ShardId!);
    const under = async (fault: ReturnType<StreamProxy["decide"]>): ReturnType<typeof page> => {
      proxy.decide = () => fault;
      try {
        return await page(first);
      } finally {
        proxy.decide = () => undefined;
      }
    };
    const empty = await under("empty");
    expect(empty.records).toEqual([]);
    expect((await page(empty.next!)).records).toEqual(all.slice(0, 5));
    const short = await under("short");
    expect(short.records).toEqual(all.slice(0, 1));
    const again = await under("again");
    expect(again.records).toEqual(all.slice(0, 5));
    expect((await page(again.next!)).records).toEqual(all.slice(0, 5));
    await expect(under("expired")).rejects.toThrow("ExpiredIterator");
    await expect(under("lost-reply")).rejects.toThrow();
    await expect(under("internal")).rejects.toThrow("InternalServerError");
    const number = all[1]!.dynamodb!.SequenceNumber!;
    const rest = await page(await begin(ShardId!, number));
    expect(rest.records).toEqual(all.slice(2, 7));
    await proxy.trim(table.tableName);
    await expect(page(first)).rejects.toThrow("TrimmedDataAccess");
    await expect(begin(ShardId!, number)).rejects.toThrow("TrimmedDataAccess");
    expect((await drain(ShardId!)).records).toEqual([]);
  });
});

function partitionsOf(records: readonly _Record[]): readonly string[] {
  return records.map(({ dynamodb }) => dynamodb!.Keys!["PK"]!.S!);
}
