import { afterAll, afterEach, beforeAll, beforeEach } from "vitest";
import { DynamoRepository, type DynamoOptions, type DynamoTransport } from "zae-limiter/dynamodb";
import type { AttributeMap } from "../../src/repository/dynamodb/transport/attribute-values.ts";
import { freshTableName, type Engine } from "./engine.ts";
import { startFaultProxy, type FaultProxy } from "./fault-proxy.ts";
import { openTransport, type TransportName } from "./transports.ts";

/** A table behind a fault proxy, new for each test, and what tests do with it. */
export interface ProxiedTable {
  readonly proxy: FaultProxy;
  /** Opens a repository on the table, as one process of several; closed after the test. */
  open(namespace?: string, options?: DynamoOptions): Promise<DynamoRepository>;
  /** Calls the engine without the proxy. */
  raw<Output extends object>(operation: string, input?: object): Promise<Output>;
  /** Every item of the table. */
  items(): Promise<readonly AttributeMap[]>;
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

  return {
    get proxy() {
      return proxy;
    },
    raw,
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
    items: async () => {
      const found: AttributeMap[] = [];
      let ExclusiveStartKey: AttributeMap | undefined;
      do {
        const page = await raw<{ Items?: AttributeMap[]; LastEvaluatedKey?: AttributeMap }>(
          "Scan",
          {
            ...(ExclusiveStartKey && { ExclusiveStartKey }),
          },
        );
        found.push(...(page.Items ?? []));
        ExclusiveStartKey = page.LastEvaluatedKey;
      } while (ExclusiveStartKey !== undefined);
      return found;
    },
  };
}

/** The keys of items, as text. */
export function keysOf(items: readonly AttributeMap[]): readonly string[] {
  return items.map(({ PK, SK }) => `${(PK as { S: string }).S} ${(SK as { S: string }).S}`).sort();
}
