/* The bundled provisioner behind the Lambda Runtime API, with a table and an address for answers. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Limit, type Repository } from "zae-limiter";
import { DynamoRepository, leanTransport, type DynamoTransport } from "zae-limiter/dynamodb";
import { afterAll, beforeAll, describe, expect, inject, it, onTestFinished } from "vitest";
import { whyMissing } from "../../limiter/test/support/engine-process.ts";
import { describeUnlessMissing, freshTableName } from "../../limiter/test/support/engine.ts";
import {
  startFaultProxy,
  type FaultProxy,
  type ProxiedRequest,
} from "../../limiter/test/support/fault-proxy.ts";
import { availableOrSkipped } from "../../../test/package/available.ts";
import { node22, node24 } from "../../../tools/fetched.mjs";
import { bundleFunction } from "../../../tools/lambda.mjs";
import { AnswerAddress } from "./support/answer-address.ts";
import { FunctionProcess } from "./support/function-process.ts";
import type { Outcome } from "./support/runtime-api.ts";

/** Those that Lambda offers. */
const NODES = [
  ["Node 22", availableOrSkipped("Node 22", node22)],
  ["Node 24", availableOrSkipped("Node 24", node24)],
] as const;
const PRESENT = NODES.filter(([, node]) => node !== undefined);

const CREDENTIALS = { accessKeyId: "local", secretAccessKey: "local" };
const STACK_ID = "arn:aws:cloudformation:eu-west-1:123456789012:stack/app/0a1b2c";
const DONE = { result: null };

type Answer = Readonly<Record<string, unknown>>;

describeUnlessMissing("the bundled provisioner", whyMissing(), () => {
  const folder = mkdtempSync(join(tmpdir(), "bundle-"));
  const tableName = freshTableName();
  const address = new AnswerAddress();
  let bundle: string;
  let responseUrl: string;
  let transport: DynamoTransport;
  let table: DynamoRepository;
  let proxy: FaultProxy;

  beforeAll(async () => {
    const { endpointUrl } = inject("engine")!;
    [bundle, responseUrl, transport, proxy] = await Promise.all([
      bundleFunction("provisioner", join(folder, "index.mjs")),
      address.listen(),
      leanTransport({ endpointUrl, credentials: CREDENTIALS }),
      startFaultProxy(endpointUrl),
    ]);
    table = await DynamoRepository.open("default", {
      stack: tableName,
      transport,
      provisioning: "table",
      configCacheTtlMs: 0,
    });
  }, 60_000);
  afterAll(async () => {
    rmSync(folder, { recursive: true });
    await table?.close();
    transport?.close();
    await proxy?.stop();
    await address.stop();
  });

  async function startFunction(node: string): Promise<FunctionProcess> {
    return FunctionProcess.start({
      node,
      bundle,
      environment: {
        TABLE_NAME: tableName,
        AWS_REGION: "us-east-1",
        AWS_ACCESS_KEY_ID: CREDENTIALS.accessKeyId,
        AWS_SECRET_ACCESS_KEY: CREDENTIALS.secretAccessKey,
        AWS_ENDPOINT_URL_DYNAMODB: proxy.endpointUrl,
      },
    });
  }

  /** What CloudFormation sends; scalars are texts. */
  function event(RequestType: string, fields: Readonly<Record<string, unknown>>): object {
    return {
      RequestType,
      ResponseURL: responseUrl,
      StackId: STACK_ID,
      RequestId: `request-${RequestType}`,
      ResourceType: "Custom::ZaeLimiterLimits",
      LogicalResourceId: "Limits",
      ...fields,
    };
  }

  /** Sends an event to a function, and returns what CloudFormation was told. */
  async function answerTo(
    fn: FunctionProcess,
    sent: object,
    timeoutMs?: number,
  ): Promise<Answer & { readonly PhysicalResourceId: string }> {
    expect(await fn.invoke(sent, timeoutMs)).toEqual(DONE);
    const [answer, ...more] = address.take();
    expect(more).toEqual([]);
    return answer!.body as Answer & { readonly PhysicalResourceId: string };
  }

  /** The texts of the limits of a namespace, by resource. */
  async function stored(namespace: string): Promise<Readonly<Record<string, readonly string[]>>> {
    const repository = await table.namespace(namespace);
    const found: Record<string, readonly string[]> = {};
    for (const resource of await repository.listResourcesWithDefaults())
      found[resource] = (await repository.getResourceDefaults(resource)).map(Limit.format);
    return found;
  }

  describe.each(PRESENT)("on %s", (name, node) => {
    it("creates, updates, moves and deletes limits, with only the bundle [W-64]", async () => {
      const fn = await startFunction(node!);
      onTestFinished(() => fn.stop());
      expect(fn.files).toEqual(["index.mjs"]);
      const [own, other] = [`life-${name.at(-1)}`, `moved-${name.at(-1)}`];
      const first = {
        ServiceToken: "arn:aws:lambda:eu-west-1:123456789012:function:limits-provisioner",
        Namespace: own,
        System: { OnUnavailable: "allow", Limits: { rpm: { Capacity: "5", Burst: "50" } } },
        Resources: { "gpt-4": { Limits: { tpm: "10000/min:15000" }, Inherit: "true" } },
        Entities: {
          acme: { Metadata: { seats: "5" } },
          "key-1": {
            Parent: "acme",
            Cascade: "true",
            Resources: { _default_: { Limits: { rpm: { Capacity: "500" } } } },
          },
        },
      };

      expect(await fn.invoke(event("Create", { ResourceProperties: first }))).toEqual(DONE);
      const [{ method, headers, bytes, body } = expect.fail("no answer")] = address.take();
      expect(method).toBe("PUT");
      expect(headers).toMatchObject({ "content-type": "", "content-length": String(bytes) });
      const PhysicalResourceId = expect.stringMatching(
        new RegExp(`^${tableName}/${own}/limits-provisioner/[0-9a-f]{8}$`),
      ) as unknown as string;
      expect(body).toEqual({
        Status: "SUCCESS",
        PhysicalResourceId,
        StackId: STACK_ID,
        RequestId: "request-Create",
        LogicalResourceId: "Limits",
        Data: { Created: "5", Updated: "0", Deleted: "0", Unchanged: "0", Revision: "2" },
      });
      const id = body["PhysicalResourceId"] as string;
      await expectFirst(await table.namespace(own));

      // The same again, as an update and as a repeated event: nothing is written.
      const update = (before: object, after: object, of = id): object =>
        event("Update", {
          PhysicalResourceId: of,
          OldResourceProperties: before,
          ResourceProperties: after,
        });
      const before = proxy.seen.length;
      for (const same of [update(first, first), event("Create", { ResourceProperties: first })])
        expect(await answerTo(fn, same)).toMatchObject({
          Status: "SUCCESS",
          PhysicalResourceId: id,
          Data: { Unchanged: "5", Created: "0", Updated: "0", Revision: "2" },
        });
      expect(writesIn(proxy.seen.slice(before))).toEqual([]);

      // What is no longer declared goes, apart from records.
      const { System, Namespace } = first;
      const second = { Namespace, System: { ...System, Limits: { rpm: "7/min" } } };
      expect(await answerTo(fn, update(first, second))).toMatchObject({
        PhysicalResourceId: id,
        Data: { Updated: "1", Deleted: "2" },
      });
      expect(await stored(own)).toEqual({});
      const repository = await table.namespace(own);
      expect(await repository.getEntity("key-1")).toMatchObject({ parentId: "acme" });

      // Another namespace, by the text of a file: another resource.
      const third = { Manifest: `namespace: ${other}\nresources: {gpt-4: {limits: {rpm: 3}}}\n` };
      const moved = await answerTo(fn, update(second, third));
      expect(moved).toMatchObject({ Status: "SUCCESS", Data: { Created: "1" } });
      expect(moved.PhysicalResourceId).toContain(`${tableName}/${other}/`);
      const remove = (of: string, ResourceProperties: object): object =>
        event("Delete", { PhysicalResourceId: of, ResourceProperties });
      expect(await answerTo(fn, remove(id, second))).toMatchObject({
        Status: "SUCCESS",
        PhysicalResourceId: id,
        Data: { Deleted: "1" },
      });
      expect((await (await table.namespace(own)).getSystemDefaults()).limits).toEqual([]);
      expect(await stored(other)).toEqual({ "gpt-4": ["rpm:3/min"] });
      expect(await answerTo(fn, remove(moved.PhysicalResourceId, third))).toMatchObject({
        Status: "SUCCESS",
        Data: { Deleted: "1" },
      });
      expect(await stored(other)).toEqual({});
    });
  });

  /** Checks what the first properties declare, and that it was written as by any other caller. */
  async function expectFirst(repository: Repository): Promise<void> {
    // W-64: the burst is not what flows in.
    expect(await repository.getSystemDefaults()).toMatchObject({
      limits: [Limit.perMinute("rpm", 5, { burst: 50 })],
      onUnavailable: "allow",
    });
    expect(await repository.getLevel({ resource: "gpt-4" })).toMatchObject({ inherit: true });
    expect(await repository.getEntity("acme")).toMatchObject({ metadata: { seats: "5" } });
    expect(await repository.getEntity("key-1")).toMatchObject({ parentId: "acme", cascade: true });
    expect(await repository.listResourcesWithEntityConfigs()).toEqual(["_default_"]);
    const { items } = await repository.getAuditEvents("key-1");
    expect(items.map(({ action, principal }) => [action, principal])).toContainEqual([
      "limits_set",
      STACK_ID,
    ]);
  }

  describe("when something goes wrong", () => {
    let fn: FunctionProcess;
    const node = PRESENT[0]?.[1];

    beforeAll(async () => {
      if (node !== undefined) fn = await startFunction(node);
    });
    afterAll(() => fn?.stop());

    const properties = (Namespace: string): object => ({
      Namespace,
      Resources: {
        first: { Limits: { rpm: "1" } },
        second: { Limits: { rpm: "2" } },
        third: { Limits: { rpm: "3" } },
      },
    });
    const ALL = { first: ["rpm:1/min"], second: ["rpm:2/min"], third: ["rpm:3/min"] };

    it.skipIf(node === undefined)(
      "answers that properties are wrong, and a rollback finds nothing to delete [W-64]",
      async () => {
        const ResourceProperties = { Namespace: "wrong", Resources: { "b#d": { Limits: {} } } };
        const failed = await answerTo(fn, event("Create", { ResourceProperties }));
        expect(failed).toMatchObject({
          Status: "FAILED",
          Reason: expect.stringContaining("Properties.Resources.b#d.Limits: ") as unknown,
        });
        const { PhysicalResourceId } = failed;
        expect(
          await answerTo(fn, event("Delete", { PhysicalResourceId, ResourceProperties })),
        ).toMatchObject({ Status: "SUCCESS", PhysicalResourceId });
        expect(await table.getNamespace("wrong")).toBeUndefined();
      },
    );

    it.skipIf(node === undefined)(
      "answers what is left of a change, and goes on with it [W-64]",
      async () => {
        const create = event("Create", { ResourceProperties: properties("partial") });
        const failed = await failing("second", "denied", () => answerTo(fn, create));
        expect(failed).toMatchObject({
          Status: "FAILED",
          Reason: expect.stringMatching(
            /^1 of 3 changes.* Left: create resource second, create resource third\.$/s,
          ) as unknown,
        });
        expect(await stored("partial")).toEqual({ first: ["rpm:1/min"] });
        const state = await (await table.namespace("partial")).getProvisionerState();
        expect([state.lastApplied, Object.keys(state.pending!.declared.resources)]).toEqual([
          undefined,
          ["first", "second", "third"],
        ]);
        expect(await answerTo(fn, create)).toMatchObject({
          Status: "SUCCESS",
          Data: { Created: "2", Unchanged: "1" },
        });
        expect(await stored("partial")).toEqual(ALL);
      },
    );

    it.skipIf(node === undefined)("rolls back a creation that stopped in the middle", async () => {
      const ResourceProperties = properties("rolled-back");
      const { PhysicalResourceId } = await failing("third", "denied", () =>
        answerTo(fn, event("Create", { ResourceProperties })),
      );
      expect(await stored("rolled-back")).not.toEqual({});
      const remove = event("Delete", { PhysicalResourceId, ResourceProperties });
      expect(await answerTo(fn, remove)).toMatchObject({ Data: { Deleted: "2" } });
      expect(await stored("rolled-back")).toEqual({});
    });

    it.skipIf(node === undefined)("answers before its time is over", async () => {
      const create = event("Create", { ResourceProperties: properties("slow") });
      const failed = await failing("second", "silence", () => answerTo(fn, create, 1200));
      expect(failed).toMatchObject({
        Status: "FAILED",
        Reason: expect.stringContaining("The time of the function was over") as unknown,
      });
      expect(await answerTo(fn, create)).toMatchObject({ Status: "SUCCESS" });
      expect(await stored("slow")).toEqual(ALL);
    });

    it.skipIf(node === undefined)("goes on after it was killed in the middle", async () => {
      const create = event("Create", { ResourceProperties: properties("killed") });
      const killed = await startFunction(node!);
      await new Promise<void>((reached) => {
        proxy.decide = (request) => {
          if (!isWriteOf(request, "second")) return undefined;
          reached();
          return "silence";
        };
        void killed.invoke(create);
      });
      await killed.stop();
      proxy.decide = () => undefined;
      expect(await stored("killed")).toEqual({ first: ["rpm:1/min"] });
      expect(await answerTo(fn, create)).toMatchObject({ Status: "SUCCESS" });
      expect(await stored("killed")).toEqual(ALL);
    });

    it.skipIf(node === undefined)(
      "fails if nobody takes the answer, and a repeated event delivers it",
      async () => {
        const create = event("Create", { ResourceProperties: properties("unheard") });
        address.statuses.push(503, 503, 503, 503, 503);
        const outcome: Outcome = await fn.invoke(create);
        expect(outcome).toMatchObject({
          error: {
            errorMessage: expect.stringMatching(/did not take it: its status is 503\.$/) as unknown,
          },
        });
        expect(address.take()).toEqual([]);
        // One more attempt fails; the next one is taken.
        expect(await answerTo(fn, create)).toMatchObject({
          Status: "SUCCESS",
          Data: { Created: "0", Unchanged: "3" },
        });
      },
    );

    it.skipIf(node === undefined)(
      "answers a direct call, and fails on any other event",
      async () => {
        const manifest = "namespace: direct\nsystem: {limits: {rpm: 100}}\n";
        expect(await fn.invoke({ action: "plan", manifest })).toMatchObject({
          result: { status: "planned", changes: [{ action: "create", level: "system" }] },
        });
        expect(await table.getNamespace("direct")).toBeUndefined();
        expect(await fn.invoke({ action: "apply", manifest })).toMatchObject({
          result: { status: "applied", created: 1 },
        });
        expect(await fn.invoke({ source: "aws.events" })).toMatchObject({
          error: {
            errorMessage: expect.stringContaining("check what invokes this function") as unknown,
          },
        });
        expect(address.take()).toEqual([]);
      },
    );

    /** Lets the writes of a resource's limits fail while something is done. */
    async function failing<Result>(
      resource: string,
      fault: "denied" | "silence",
      work: () => Promise<Result>,
    ): Promise<Result> {
      proxy.decide = (request) => (isWriteOf(request, resource) ? fault : undefined);
      try {
        return await work();
      } finally {
        proxy.decide = () => undefined;
      }
    }
  });

  it("carries no client of AWS but that of DynamoDB", () => {
    const clients = readFileSync(bundle, "utf8").match(
      /@aws-sdk\/client-(cloudformation|cloudwatch|lambda|s3|sqs)/g,
    );
    expect(clients).toBeNull();
  });
});

const WRITES = /^(Put|Update|Delete|BatchWrite|TransactWrite)/;

function writesIn(requests: readonly ProxiedRequest[]): readonly string[] {
  return requests.map(({ operation }) => operation).filter((operation) => WRITES.test(operation));
}

/** Whether a request writes the defaults of a resource. */
function isWriteOf({ operation, input }: ProxiedRequest, resource: string): boolean {
  return (
    operation === "TransactWriteItems" &&
    JSON.stringify(input["TransactItems"]).includes(`/RESOURCE#${resource}"`)
  );
}
