import { afterEach, beforeEach, expect, it } from "vitest";
import { Limit, RateLimiter } from "zae-limiter";
import { runAggregator, type RunnerProblem } from "zae-limiter/aggregator";
import { DynamoRepository } from "zae-limiter/dynamodb";
import { connect, type ConnectedTable } from "../../support/connect.ts";
import { describeWithEngine } from "../../support/engine.ts";
import { startStreamProxy, type StreamProxy } from "../../support/stream-proxy.ts";
import { UsageTable } from "./usage-table.ts";

describeWithEngine("a stream that has dropped records before they were read", (engine) => {
  let proxy: StreamProxy;
  let connected: ConnectedTable;
  let repository: DynamoRepository;

  beforeEach(async () => {
    // All records are of one hour, also if the clock passes the end of one meanwhile.
    const atMs = Date.now();
    proxy = await startStreamProxy(engine().endpointUrl, { shards: 2, getTime: () => atMs });
    connected = await connect(proxy.endpointUrl);
    repository = await DynamoRepository.open("app", {
      stack: connected.tableName,
      endpointUrl: proxy.endpointUrl,
    });
    await repository.setSystemDefaults([Limit.perMinute("rpm", 100)]);
  });
  afterEach(async () => {
    await repository.close();
    connected.connection.close();
    await proxy.stop();
  });

  it("is reported as records lost, and the rest is counted", async () => {
    const limiter = new RateLimiter({ repository });
    const take = async (rpm: number): Promise<void> =>
      limiter.acquire({ entityId: "e", resource: "r", consume: { rpm } }, () => {});
    const place = { stack: connected.tableName, endpointUrl: proxy.endpointUrl, once: true };
    await take(1);
    await runAggregator(place);
    await take(2);
    await proxy.trim(connected.tableName);
    await take(4);
    const problems: RunnerProblem[] = [];
    await runAggregator({ ...place, onProblem: (problem) => problems.push(problem) });
    const usage = Object.values(await new UsageTable(connected.connection).usage());
    expect(usage.map(({ consumed }) => consumed)).toEqual([
      { rpm: 5000 },
      { rpm: 5000 },
      { rpm: 5000 },
    ]);
    expect(problems.map(({ kind }) => kind)).toContain("records-lost");
  });
});
