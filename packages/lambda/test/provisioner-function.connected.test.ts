/* The bundled provisioner behind the Lambda Runtime API, with a table and an address to answer. */
import { readFileSync } from "node:fs";
import { Limit, type Repository } from "zae-limiter";
import { afterAll, beforeAll, describe, expect, inject, it, onTestFinished } from "vitest";
import { whyMissing } from "../../limiter/test/support/engine-process.ts";
import { describeUnlessMissing } from "../../limiter/test/support/engine.ts";
import { availableOrSkipped } from "../../../test/package/available.ts";
import { node22, node24 } from "../../../tools/fetch-packages.mjs";
import type { FunctionProcess } from "./support/function-process.ts";
import {
  DONE,
  isWriteOf,
  ProvisionerWorld,
  STACK_ID,
  writesIn,
} from "./support/provisioner-world.ts";

/** Those that Lambda offers. */
const NODES = [
  ["Node 22", availableOrSkipped("Node 22", node22)],
  ["Node 24", availableOrSkipped("Node 24", node24)],
] as const;
const PRESENT = NODES.filter(([, node]) => node !== undefined);

describeUnlessMissing("the bundled provisioner", whyMissing(), () => {
  const world = new ProvisionerWorld();
  const { address } = world;

  beforeAll(() => world.start(inject("engine")!.endpointUrl), 60_000);
  afterAll(() => world.stop());

  describe.each(PRESENT)("on %s", (name, node) => {
    it("creates limits, and writes nothing when nothing differs, with only the bundle [W-64]", async () => {
      const fn = await world.startFunction(node!);
      onTestFinished(() => fn.stop());
      expect(fn.files).toEqual(["index.mjs"]);
      const own = `life-${name.at(-1)}`;
      const first = {
        ServiceToken: "arn:aws:lambda:eu-west-1:123456789012:function:limits-provisioner",
        Manifest: `
namespace: ${own}
system: {on_unavailable: allow, limits: {rpm: {capacity: 5, burst: 50}}}
resources: {gpt-4: {limits: {tpm: 10000/min:15000}, inherit: true}}
entities:
  acme: {metadata: {seats: "5"}}
  key-1: {parent: acme, cascade: true, resources: {_default_: {limits: {rpm: 500}}}}
`,
      };

      const create = world.event("Create", { ResourceProperties: first });
      expect(await fn.invoke(create)).toEqual(DONE);
      const [{ method, headers, bytes, body } = expect.fail("no answer")] = address.take();
      // As the presigned address of S3 demands it.
      expect(method).toBe("PUT");
      expect(headers).toMatchObject({ "content-type": "", "content-length": String(bytes) });
      expect(body).toEqual({
        Status: "SUCCESS",
        PhysicalResourceId: expect.stringMatching(
          new RegExp(`^${world.tableName}/${own}/limits-provisioner/[0-9a-f]{8}$`),
        ) as unknown,
        StackId: STACK_ID,
        RequestId: "request-Create",
        LogicalResourceId: "Limits",
        Data: { Created: "5", Updated: "0", Deleted: "0", Unchanged: "0", Revision: "2" },
      });
      const id = body["PhysicalResourceId"] as string;
      await expectFirst(await world.table.namespace(own));

      // The same again, as an update and as a repeated event: nothing is written.
      const update = world.event("Update", {
        PhysicalResourceId: id,
        OldResourceProperties: first,
        ResourceProperties: first,
      });
      const before = world.proxy.seen.length;
      for (const same of [update, create])
        expect(await world.answerTo(fn, same)).toMatchObject({
          Status: "SUCCESS",
          PhysicalResourceId: id,
          Data: { Unchanged: "5", Created: "0", Updated: "0", Revision: "2" },
        });
      expect(writesIn(world.proxy.seen.slice(before))).toEqual([]);
    });
  });

  const [some] = PRESENT;
  describe.skipIf(some === undefined)("when something goes wrong", () => {
    const node = some?.[1] ?? "";
    let fn: FunctionProcess;

    beforeAll(async () => {
      fn = await world.startFunction(node);
    });
    afterAll(() => fn?.stop());

    it("goes on after it was killed in the middle", async () => {
      const create = world.event("Create", { ResourceProperties: properties("killed") });
      const killed = await world.startFunction(node);
      await new Promise<void>((reached) => {
        world.proxy.decide = (request) => {
          if (!isWriteOf(request, "second")) return undefined;
          reached();
          return "silence";
        };
        void killed.invoke(create);
      });
      await killed.stop();
      world.proxy.decide = () => undefined;
      expect(await world.stored("killed")).toEqual({ first: ["rpm:1/min"] });
      expect(await world.answerTo(fn, create)).toMatchObject({ Status: "SUCCESS" });
      expect(await world.stored("killed")).toEqual(ALL);
    });

    it("answers before its time is over", async () => {
      const create = world.event("Create", { ResourceProperties: properties("slow") });
      const failed = await world.failing("second", "silence", () =>
        world.answerTo(fn, create, 1200),
      );
      expect(failed).toMatchObject({
        Status: "FAILED",
        Reason: expect.stringContaining("The time of the function was over") as unknown,
      });
      expect(await world.answerTo(fn, create)).toMatchObject({ Status: "SUCCESS" });
      expect(await world.stored("slow")).toEqual(ALL);
    });
  });

  it("carries no client of AWS but that of DynamoDB", () => {
    const clients = /@aws-sdk\/client-(cloudformation|cloudwatch|lambda|s3|sqs)/g;
    expect(readFileSync(world.bundle, "utf8").match(clients)).toBeNull();
  });
});

/** Three resources with limits of their own, in a namespace. */
function properties(namespace: string): object {
  const resources = {
    first: { limits: { rpm: 1 } },
    second: { limits: { rpm: 2 } },
    third: { limits: { rpm: 3 } },
  };
  return { Manifest: JSON.stringify({ namespace, resources }) };
}

/** What is stored of these. */
const ALL = { first: ["rpm:1/min"], second: ["rpm:2/min"], third: ["rpm:3/min"] };

/** Checks what the first properties declare, and that it was written as by any other caller. */
async function expectFirst(repository: Repository): Promise<void> {
  // The burst is not what flows in.
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
