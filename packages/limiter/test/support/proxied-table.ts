import { afterAll, afterEach, beforeAll, beforeEach } from "vitest";
import { DynamoRepository, type DynamoOptions, type DynamoTransport } from "zae-limiter/dynamodb";
import {
  getNumber,
  type AttributeMap,
} from "../../src/repository/dynamodb/transport/attribute-values.ts";
import { freshTableName, type Engine } from "./engine.ts";
import { startFaultProxy, type FaultProxy, type ProxiedRequest } from "./fault-proxy.ts";
import { openTransport, type TransportName } from "./transports.ts";

/** A table behind a fault proxy, new for each test, and what tests do with it. */
export interface ProxiedTable {
  readonly proxy: FaultProxy;
  /** The table, for what opens no repository: its stack, and a way through the proxy. */
  readonly place: { readonly stack: string; readonly transport: DynamoTransport };
  /** Opens a repository on the table, as one process of several; closed after the test. */
  open(namespace?: string, options?: DynamoOptions): Promise<DynamoRepository>;
  /** Calls the engine without the proxy. */
  raw<Output extends object>(operation: string, input?: object): Promise<Output>;
  /** Every item of the table. */
  items(): Promise<readonly AttributeMap[]>;
  /** The items of all buckets, or of an entity's, by shard. */
  bucketItems(entityId?: string): Promise<readonly AttributeMap[]>;
  /** Tokens that the buckets of an entity count as consumed once nothing is under way. */
  consumed(repository: DynamoRepository, entityId?: string): Promise<number>;
  /** What was sent through the proxy meanwhile, in order. */
  sentDuring(work: () => Promise<unknown>): Promise<readonly ProxiedRequest[]>;
  /** The same, by the names of the operations. */
  listOperations(work: () => Promise<unknown>): Promise<readonly string[]>;
}

/** Registers the hooks that give each test its table. */
export function useProxiedTable(
  engine: () => Engine,
  transport: TransportName = "SDK's",
): ProxiedTable {
  let proxy: FaultProxy;
  let direct: DynamoTransport;
  let proxied: DynamoTransport;
  let tableName: string;
  let opened: DynamoRepository[] = [];

  beforeAll(async () => {
    proxy = await startFaultProxy(engine().endpointUrl);
    direct = await openTransport(transport, engine());
    proxied = await openTransport(transport, proxy);
  });
  afterAll(async () => {
    direct.close();
    proxied.close();
    await proxy.stop();
  });
  beforeEach(() => {
    tableName = freshTableName();
    proxy.decide = () => undefined;
  });
  afterEach(async () => {
    for (const repository of opened) await repository.close();
    opened = [];
  });

  const raw = async <Output extends object>(
    operation: string,
    input: object = {},
  ): Promise<Output> =>
    (await direct.call(
      operation,
      { TableName: tableName, ...input },
      { signal: AbortSignal.timeout(10_000) },
    )) as Output;

  const items = async (): Promise<readonly AttributeMap[]> => {
    const found: AttributeMap[] = [];
    let ExclusiveStartKey: AttributeMap | undefined;
    do {
      const page = await raw<{ Items?: AttributeMap[]; LastEvaluatedKey?: AttributeMap }>("Scan", {
        ...(ExclusiveStartKey && { ExclusiveStartKey }),
      });
      found.push(...(page.Items ?? []));
      ExclusiveStartKey = page.LastEvaluatedKey;
    } while (ExclusiveStartKey !== undefined);
    return found;
  };

  const sentDuring: ProxiedTable["sentDuring"] = async (work) => {
    const before = proxy.seen.length;
    await work();
    return proxy.seen.slice(before);
  };

  return {
    get proxy() {
      return proxy;
    },
    get place() {
      return { stack: tableName, transport: proxied };
    },
    raw,
    items,
    bucketItems: async (entityId) => {
      const found = (await items()).flatMap((item) => {
        const bucket = buildBucket(item);
        return bucket === undefined ? [] : [{ item, ...bucket }];
      });
      return found
        .filter((each) => entityId === undefined || each.entityId === entityId)
        .toSorted((left, right) => left.shard - right.shard)
        .map(({ item }) => item);
    },
    consumed: async (repository, entityId = "e") => {
      await proxy.idle();
      // There may be several shards, which throttling makes too.
      const shards = await repository.getBuckets(entityId);
      return shards.reduce((sum, { totalConsumedMilli }) => sum + totalConsumedMilli, 0) / 1000;
    },
    sentDuring,
    listOperations: async (work) => (await sentDuring(work)).map(({ operation }) => operation),
    open: async (namespace = "app", options = {}) => {
      const repository = await DynamoRepository.open(namespace, {
        stack: tableName,
        transport: proxied,
        provisioning: "table",
        stream: false,
        requestTimeoutMs: 10_000,
        ...options,
      });
      opened.push(repository);
      return repository;
    },
  };
}

/** The keys of items, as text. */
export function listKeys(items: readonly AttributeMap[]): readonly string[] {
  return items.map(({ PK, SK }) => `${(PK as { S: string }).S} ${(SK as { S: string }).S}`).sort();
}

/** The entity and the shard that a bucket's item, or its key, is of; undefined for other items. */
export function buildBucket({
  PK,
}: AttributeMap): { readonly entityId: string; readonly shard: number } | undefined {
  const partition = PK !== undefined && "S" in PK ? PK.S : "";
  const match = /\/BUCKET#([^#]+)#[^#]+#(\d+)$/.exec(partition);
  return match === null ? undefined : { entityId: match[1]!, shard: Number(match[2]) };
}

/** One number of each item. */
export function numbersIn(
  items: readonly AttributeMap[],
  attribute: string,
): readonly (number | undefined)[] {
  return items.map((item) => getNumber(item[attribute]));
}
