import { afterAll, beforeAll, expect, it } from "vitest";
import type { DynamoTransport } from "zae-limiter/dynamodb";
import { connectToNewTable } from "../../support/connect.ts";
import { describeWithEngine } from "../../support/engine.ts";
import { startFaultProxy, type FaultProxy } from "../../support/fault-proxy.ts";
import { SimulatedCrowd } from "../../support/simulated-crowd.ts";
import { openTransport } from "../../support/transports.ts";
import { mostPerGrant, perGrant, type Cost } from "../../processes/faults/cost-per-grant.ts";
import { LIMIT } from "../../processes/faults/hot-bucket.ts";
import {
  ProxyFaults,
  addUp,
  type FaultPlan,
  type ProxyCounts,
} from "../../processes/faults/proxy-faults.ts";
import { CALLERS, THROTTLES } from "../../processes/faults/scenarios.ts";

const PROCESSES = 3;
const PHASES_MS = { warmUp: 1000, before: 2000, during: 3000, after: 2000 };
const PLAN: FaultPlan = { share: 0.05, kinds: THROTTLES, sparesLastAttempt: true };

// Time is simulated, so that a busy machine makes nothing cheaper; what is sent is real.
describeWithEngine("an exhausted bucket, 5 % of whose writes are throttled", (engine) => {
  let crowd: SimulatedCrowd;
  const proxies: FaultProxy[] = [];
  let transports: readonly DynamoTransport[] = [];
  const faults = Array.from({ length: PROCESSES }, (_, index) => new ProxyFaults(index));
  const phases = new Map<string, ProxyCounts & { readonly grants: number }>();

  beforeAll(async () => {
    const { tableName } = await connectToNewTable(engine().endpointUrl, { transport: "lean" });
    for (const each of faults) {
      const proxy = await startFaultProxy(engine().endpointUrl);
      proxy.decide = (request) => each.decide(request);
      proxy.observe = (request, answer) => each.observe(request, answer);
      proxies.push(proxy);
    }
    transports = await Promise.all(proxies.map(async (proxy) => openTransport("lean", proxy)));
    crowd = new SimulatedCrowd({
      tableName,
      transports,
      calls: CALLERS,
      limit: LIMIT,
      maxShards: 32,
      refusalMemoryMs: 1000,
    });
    for (const [name, durationMs] of Object.entries(PHASES_MS)) {
      for (const each of faults) each.plan = name === "during" ? PLAN : undefined;
      const grants = crowd.grants;
      await crowd.run(durationMs);
      const counts = addUp(faults.map((each) => each.takeCounts()));
      phases.set(name, { ...counts, grants: crowd.grants - grants });
    }
  }, 120_000);
  afterAll(async () => {
    for (const transport of transports) transport.close();
    for (const proxy of proxies) await proxy.stop();
  });

  it("grants what it earns, and charges it once", async () => {
    expect(phases.get("during")!.faults).toBeGreaterThan(10);
    expect(await crowd.consumed()).toBe(crowd.grants);
  });

  it("no call gives up, and calls are refused as before", () => {
    expect(crowd.contended).toBe(0);
    expect(crowd.refusals).toBeGreaterThan(crowd.grants);
  });

  it.each<Cost>(["requests", "writeUnits", "readUnits"])(
    "a grant costs as many %s afterwards as before",
    (cost) => {
      const [before, after] = [phases.get("before")!, phases.get("after")!];
      expect(perGrant(after, cost)).toBeLessThanOrEqual(mostPerGrant(before, cost));
    },
  );
});
