import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { DynamoRepository, type DynamoTransport } from "zae-limiter/dynamodb";
import { repositoryContract, type TestRunner } from "@zae-limiter/contract";
import { CallRecorder } from "../../../../infra/test/support/iam/call-recorder.ts";
import { missingRights } from "../../../../infra/test/support/iam/rights.ts";
import { freshTableName } from "../../support/engine.ts";
import { StreamDrain } from "../../support/stream-drain.ts";
import {
  describeWithTransports,
  ONE_TRANSPORT_AN_ENGINE,
  openTransport,
} from "../../support/transports.ts";

/**
 * The topics that read usage: their tables have a stream, which an aggregator counts. On all tables
 * it would take twice the time.
 */
const COUNTED: ReadonlySet<string> = new Set([
  "charges for what already happened",
  "entities that are erased",
  "limits that no level in force has",
  "namespaces",
  "usage",
  "usage with parents",
  "unusual identifiers",
]);

describeWithTransports(
  "the contract of every backend",
  (engine, name) => {
    // One client for all tests: making one costs more than most tests.
    let transport: DynamoTransport;
    let topic: string;
    let opened = 0;
    const recorder = new CallRecorder();
    const topics = new Set<string>();
    const runner = runnerByTopic(topics, (title) => (topic = title));
    beforeAll(async () => {
      transport = await openTransport(name, engine());
    });
    afterAll(() => transport.close());

    repositoryContract(
      "DynamoRepository",
      async (clock) => {
        const stack = freshTableName();
        const stream = COUNTED.has(topic);
        const drain = new StreamDrain({ transport, tableName: stack, clock });
        const repository = await DynamoRepository.open(undefined, {
          stack,
          transport: recorder.transport(stream ? drain.watched(transport) : transport),
          provisioning: "table",
          stream,
          clock,
          // Where both transports are seen, each test is with sharing on one of them.
          shareRequests: (opened++ % 2 === 0) === (name === "lean"),
        });
        expect(repository.capabilities.usageSnapshots).toBe(stream);
        return recorder.watched(repository);
      },
      runner,
    );

    it("counts usage in topics that exist", () => {
      expect([...COUNTED].filter((title) => !topics.has(title))).toEqual([]);
    });

    // Both transports send the same requests.
    if (name === "lean")
      it("needs nothing that the policies of the callers do not allow", async () => {
        expect(recorder.calls.length).toBeGreaterThan(80);
        expect(await missingRights(recorder.calls)).toEqual([]);
      });
  },
  ONE_TRANSPORT_AN_ENGINE,
);

/** A runner that collects titles, and calls back with the innermost one before a test runs. */
function runnerByTopic(titles: Set<string>, onTest: (title: string) => void): TestRunner {
  let defined = "";
  return {
    describe: (title, body) =>
      describe(title, () => {
        defined = title;
        titles.add(title);
        body();
      }),
    it: (title, body) => {
      const topic = defined;
      it(title, async () => {
        onTest(topic);
        await body();
      });
    },
  };
}
