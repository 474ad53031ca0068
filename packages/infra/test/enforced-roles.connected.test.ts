/*
 * Programs with nothing but the rights of a policy: between them and the engine stands a server
 * that evaluates the policy for every request, as AWS does, and denies what it does not allow.
 */
import { Limit, PermissionDenied, RateLimiter } from "zae-limiter";
import { runAggregator } from "zae-limiter/aggregator";
import { DynamoRepository, type DynamoTransport } from "zae-limiter/dynamodb";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { describeWithEngine, freshTableName } from "../../limiter/test/support/engine.ts";
import { openTransport } from "../../limiter/test/support/transports.ts";
import { runnerStatements } from "../src/policies/aggregator-statements.ts";
import { NAMESPACE_TAG, policyDocument, type PolicyKind } from "../src/policies/policy-document.ts";
import { startEnforcingProxy, type EnforcingProxy } from "./support/iam/enforcing-proxy.ts";
import * as scenario from "./support/iam/every-method.ts";
import { PolicyJudge, TABLE_ARN } from "./support/iam/policy-judge.ts";

const LIMITS = [Limit.perDay("rpm", 5)];
const REQUEST = { entityId: "key-1", resource: "gpt-4", consume: { rpm: 1 } };

describeWithEngine("a program with the rights of", (engine) => {
  const stack = freshTableName();
  let unbounded: DynamoTransport;
  let operator: DynamoRepository;
  let closers: (() => Promise<unknown> | void)[] = [];
  let lackedByAggregator: readonly string[];

  beforeAll(async () => {
    unbounded = await openTransport("lean", engine());
    operator = await DynamoRepository.open("tenant-a", {
      stack,
      transport: unbounded,
      provisioning: "table",
      requestTimeoutMs: 10_000,
    });
    await operator.registerNamespace("tenant-b");
    await scenario.manageInEveryWay(operator);
    await scenario.manageInEveryWay(await operator.namespace("tenant-b"));
    await scenario.acquireInEveryWay(operator);
    lackedByAggregator = await aggregate();
    await closeAll();
  });
  afterEach(closeAll);
  afterAll(async () => {
    await operator.close();
    unbounded.close();
  });

  /** Where a principal with these rights gets its answers from. */
  async function proxied(
    judge: PolicyJudge,
  ): Promise<{ readonly proxy: EnforcingProxy; readonly transport: DynamoTransport }> {
    const proxy = await startEnforcingProxy(engine().endpointUrl, judge);
    const transport = await openTransport("lean", proxy);
    closers.push(
      () => proxy.stop(),
      () => transport.close(),
    );
    return { proxy, transport };
  }

  /** A program of a kind; a tenant's has the tag of tenant-a, if no other. */
  async function program(
    kind: PolicyKind,
    {
      namespace = "tenant-a",
      tag = operator.namespaceId,
    }: { namespace?: string; tag?: string } = {},
  ): Promise<{ readonly repository: DynamoRepository; readonly proxy: EnforcingProxy }> {
    const policies = [policyDocument(kind, TABLE_ARN)];
    const judge = new PolicyJudge({ policies, tags: { [NAMESPACE_TAG]: tag } });
    const { proxy, transport } = await proxied(judge);
    const place = { stack, transport, endpointUrl: proxy.endpointUrl, requestTimeoutMs: 10_000 };
    // What AWS's own addresses mean by default.
    const repository = await DynamoRepository.open(namespace, { ...place, provisioning: "stack" });
    closers.push(() => repository.close());
    return { repository, proxy };
  }

  /** That a call is denied for lack of an action, and says what to do. */
  async function lacks(action: string, work: Promise<unknown>): Promise<void> {
    const error = await work.then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    expect(error).toBeInstanceOf(PermissionDenied);
    expect(error).toMatchObject({ code: "ERR_LIMITER_PERMISSION_DENIED" });
    expect(String(error)).toContain(`AWS denied dynamodb:${action} on table ${stack}`);
    expect(String(error)).toMatch(/attach .*acquire-only, read-only or full-access/);
  }

  it.each(["acquire-only", "namespace-acquire"] as const)(
    "%s acquires in every way, and manages nothing",
    async (kind) => {
      const { repository, proxy } = await program(kind);
      await scenario.acquireInEveryWay(repository, { stranger: kind });
      await scenario.lookAround(repository);
      expect(proxy.denied).toEqual([]);
      const before = await operator.getLimits("key-1");
      await lacks("PutItem", repository.setLimits("key-1", LIMITS));
      await lacks("PutItem", repository.createEntity("mine"));
      await lacks("Query", repository.deleteEntity("key-1"));
      await lacks("Query", repository.getAuditEvents("key-1"));
      await lacks("Query", repository.getBuckets("key-1"));
      expect(await operator.getLimits("key-1")).toEqual(before);
      expect(await operator.getEntity("mine")).toBeUndefined();
    },
  );

  it.each(["read-only", "namespace-read-only"] as const)(
    "%s reads in every way, and acquires nothing",
    async (kind) => {
      const { repository, proxy } = await program(kind);
      await scenario.readInEveryWay(repository);
      if (kind === "read-only") await scenario.readNamespaces(repository);
      expect(proxy.denied).toEqual([]);
      const before = await operator.getBuckets("key-1");
      // Not an outage: a limiter that lets calls pass during one must not do so here.
      const limiter = new RateLimiter({ repository, onUnavailable: "allow" });
      await lacks("UpdateItem", limiter.acquire(REQUEST));
      await lacks("PutItem", repository.setSystemDefaults(LIMITS));
      expect(await operator.getBuckets("key-1")).toEqual(before);
    },
  );

  it("full-access uses every method, except those that create and delete tables", async () => {
    const { repository, proxy } = await program("full-access");
    await scenario.acquireInEveryWay(repository, { stranger: "full-access" });
    await scenario.readInEveryWay(repository);
    await scenario.readNamespaces(repository);
    await scenario.manageNamespaces(repository);
    expect(proxy.denied).toEqual([]);
    await lacks("DeleteTable", repository.deleteTable());
  });

  it("namespace-full-access manages its namespace, and no other", async () => {
    const name = "tenant-c";
    const tag = await operator.registerNamespace(name);
    const { repository, proxy } = await program("namespace-full-access", { namespace: name, tag });
    await scenario.manageInEveryWay(repository);
    await scenario.acquireInEveryWay(repository);
    await scenario.readInEveryWay(repository);
    await scenario.forgetDefaults(repository);
    expect(proxy.denied).toEqual([]);
    await lacks("Query", repository.listNamespaces());
    await lacks("PutItem", repository.registerNamespace("mine"));
    await lacks("DeleteItem", repository.deleteNamespace(name));
    await lacks("PutItem", repository.setVersionRecord({ schemaVersion: "9.0.0" }));
    expect(await operator.getNamespace(name)).toMatchObject({ status: "active" });
    expect(await operator.getNamespace("mine")).toBeUndefined();
  });

  it.each(["namespace-acquire", "namespace-read-only", "namespace-full-access"] as const)(
    "%s gets nothing of another tenant, although it may look up its name",
    async (kind) => {
      const { repository: other } = await program(kind, { namespace: "tenant-b" });
      const limiter = new RateLimiter({ repository: other, onUnavailable: "allow" });
      await lacks("BatchGetItem", limiter.acquire(REQUEST));
      await lacks("BatchGetItem", limiter.available("key-1", "gpt-4"));
      await lacks("BatchGetItem", other.getSystemDefaults());
      await lacks("BatchGetItem", other.getEntity("key-1"));
      await lacks("Query", other.listEntities());
      await lacks("Query", other.getChildren("project-1"));
      await lacks("BatchGetItem", other.getAuditEvents("key-1"));
      await lacks("Query", other.getBuckets("key-1"));
    },
  );

  it.each(["", "_"])("a tenant whose tag is '%s' cannot even open", async (tag) => {
    await lacks("BatchGetItem", program("namespace-full-access", { tag }));
  });

  it("an aggregator counts the usage of all namespaces, and changes nothing else", async () => {
    expect(lackedByAggregator).toEqual([]);
    const { items } = await operator.getUsageSnapshots({ entityId: "stranger" });
    expect(items.map(({ counters }) => counters)).toEqual([{ rpm: 601 }]);
  });

  /** Has everything counted by an aggregator that has only its rights; returns what it lacked. */
  async function aggregate(): Promise<readonly string[]> {
    const streamArn = `${TABLE_ARN}/stream/label`;
    const Statement = runnerStatements({ tableArn: TABLE_ARN, streamArn });
    const { proxy, transport } = await proxied(
      new PolicyJudge({ policies: [{ Version: "2012-10-17", Statement }] }),
    );
    await runAggregator({ stack, transport, once: true });
    return proxy.denied;
  }

  async function closeAll(): Promise<void> {
    for (const close of closers.toReversed()) await close();
    closers = [];
  }
});
