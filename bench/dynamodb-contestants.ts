import { DynamoDB } from "@aws-sdk/client-dynamodb";
import { RateLimiterDynamo, RateLimiterUnion } from "rate-limiter-flexible";
import { Limit, RateLimiter } from "zae-limiter";
import { DynamoRepository } from "zae-limiter/dynamodb";

/** Does operations, this many at a time. */
export type Run = (operations: number, concurrency: number) => Promise<void>;

/** The client that all contestants share, and what it counted. */
export interface SharedClient {
  readonly client: DynamoDB;
  /** What the engine billed since the last call of it; measuring costs, so it is off unless asked for. */
  measured(work: () => Promise<void>): Promise<{ readonly requests: number; readonly writeUnits: number; readonly readUnits: number }>;
}

/** So large that nobody is ever refused; still exact for all sides. */
const NEVER_REACHED = 1_000_000_000;

/** Keys that take turns, so that concurrent calls seldom meet on one item. */
const KEYS = Array.from({ length: 128 }, (_, index) => `customer-${index}`);

const RAW_TABLE = "bench-raw";
const PEER_TABLE = "bench-peer";

/** A client as ours is configured: one attempt, connections kept alive, the middleware stack built once. */
export function sharedClient(endpointUrl: string): SharedClient {
  const agent = { keepAlive: true, maxSockets: 128 };
  const client = new DynamoDB({
    endpoint: endpointUrl,
    region: "us-east-1",
    credentials: { accessKeyId: "local", secretAccessKey: "local" },
    maxAttempts: 1,
    cacheMiddleware: true,
    requestHandler: { httpAgent: agent, httpsAgent: agent },
  });
  let counts: { requests: number; writeUnits: number; readUnits: number } | undefined;
  client.middlewareStack.add(
    (next, context) => async (call) => {
      if (counts === undefined) return next(call);
      const counting = counts;
      counting.requests += 1;
      const answer = await next({ ...call, input: { ...call.input, ReturnConsumedCapacity: "INDEXES" } }).catch((error: unknown) => {
        // AWS bills a condition that failed; the engine's reply does not tell.
        if ((error as Error).name === "ConditionalCheckFailedException") counting.writeUnits += 1;
        throw error;
      });
      const units = unitsOf(answer.output);
      if (/Get|Query|Scan/.test(context.commandName ?? "")) counting.readUnits += units;
      else counting.writeUnits += units;
      return answer;
    },
    { step: "initialize", name: "countUnits" },
  );
  return {
    client,
    measured: async (work) => {
      const counting = (counts = { requests: 0, writeUnits: 0, readUnits: 0 });
      await work();
      counts = undefined;
      return counting;
    },
  };
}

/** Every contestant by the name that the tables use. */
export async function openContestants({ client }: SharedClient): Promise<Readonly<Record<string, Run>>> {
  await createTables(client);
  return {
    "floor: one conditional UpdateItem": await floor(client),
    "zae-limiter, two limits": await ours(client),
    "rate-limiter-flexible, one limit": peer(client, ["rpm"]),
    "rate-limiter-flexible, union of two": peer(client, ["rpm", "tpm"]),
  };
}

/** What DynamoDB itself costs: take one token where there is one. */
async function floor(client: DynamoDB): Promise<Run> {
  for (const key of KEYS) await client.putItem({ TableName: RAW_TABLE, Item: { key: { S: key }, tk: { N: String(NEVER_REACHED) } } });
  return concurrently(
    async (key) =>
      void (await client.updateItem({
        TableName: RAW_TABLE,
        Key: { key: { S: key } },
        UpdateExpression: "ADD tk :taken",
        ConditionExpression: "tk >= :needed",
        ExpressionAttributeValues: { ":taken": { N: "-1" }, ":needed": { N: "1" } },
      })),
  );
}

async function ours(client: DynamoDB): Promise<Run> {
  const repository = await DynamoRepository.open("bench", { stack: "bench-ours", client, provisioning: "table", stream: false });
  await repository.setSystemDefaults([Limit.perMinute("rpm", NEVER_REACHED), Limit.perMinute("tpm", NEVER_REACHED)]);
  const limiter = new RateLimiter({ repository });
  const call = async (entityId: string): Promise<void> => {
    const lease = await limiter.acquire({ entityId, resource: "gpt-4", consume: { rpm: 1, tpm: 1 } });
    await lease.commit();
  };
  for (const key of KEYS) await call(key);
  return concurrently(call);
}

function peer(client: DynamoDB, names: readonly string[]): Run {
  const limiters = names.map(
    (keyPrefix) =>
      new RateLimiterDynamo({
        storeClient: client,
        tableName: PEER_TABLE,
        tableCreated: true,
        ttlSet: true,
        keyPrefix: `${names.length}-${keyPrefix}`,
        points: NEVER_REACHED,
        duration: 3600,
      }),
  );
  const limiter = limiters.length === 1 ? limiters[0]! : new RateLimiterUnion(...limiters);
  return concurrently(async (key) => void (await limiter.consume(key, 1)));
}

function unitsOf(output: object): number {
  const { ConsumedCapacity: consumed } = output as { ConsumedCapacity?: { CapacityUnits?: number } | { CapacityUnits?: number }[] };
  return [consumed ?? []].flat().reduce((sum, { CapacityUnits = 0 }) => sum + CapacityUnits, 0);
}

async function createTables(client: DynamoDB): Promise<void> {
  for (const TableName of [RAW_TABLE, PEER_TABLE])
    await client.createTable({
      TableName,
      AttributeDefinitions: [{ AttributeName: "key", AttributeType: "S" }],
      KeySchema: [{ AttributeName: "key", KeyType: "HASH" }],
      BillingMode: "PAY_PER_REQUEST",
    });
}

function concurrently(operation: (key: string) => Promise<void>): Run {
  return async (operations, concurrency) => {
    let started = 0;
    const client = async (): Promise<void> => {
      while (started < operations) await operation(KEYS[started++ % KEYS.length]!);
    };
    await Promise.all(Array.from({ length: concurrency }, client));
  };
}
