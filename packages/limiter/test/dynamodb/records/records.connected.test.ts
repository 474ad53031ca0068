import { expect, it } from "vitest";
import { Limit } from "zae-limiter";
import { describeWithEngine } from "../../support/engine.ts";
import { script } from "../../support/fault-proxy.ts";
import { useProxiedTable } from "../../support/proxied-table.ts";

describeWithEngine("audit and records on DynamoDB", (engine) => {
  const table = useProxiedTable(engine);

  it("events are listed newest first, page by page", async () => {
    const repository = await table.open();
    for (let capacity = 1; capacity <= 5; capacity += 1)
      await repository.setLimits("e", [Limit.perMinute("rpm", capacity)]);
    const seen: unknown[] = [];
    let cursor: string | undefined;
    do {
      const page = await repository.getAuditEvents("e", {
        limit: 2,
        ...(cursor !== undefined && { cursor }),
      });
      seen.push(
        ...page.items.map(
          ({ details }) => (details["limits"] as { capacity: number }[])[0]!.capacity,
        ),
      );
      cursor = page.cursor;
    } while (cursor !== undefined);
    expect(seen).toEqual([5, 4, 3, 2, 1]);
  });

  it("the provisioner stores its state once although the answer was lost, and refuses a stale one", async () => {
    const repository = await table.open();
    const state = {
      ...(await repository.getProvisionerState()),
      managedEntities: { e: ["r"] },
      appliedHash: "sha256:1",
    };
    table.proxy.decide = script("TransactWriteItems", ["lost-reply"]);
    await repository.putProvisionerState(state);
    expect(await repository.getProvisionerState()).toEqual({ ...state, revision: 1 });
    await expect(repository.putProvisionerState(state)).rejects.toThrow("read it again");
    await repository.putProvisionerState({ ...state, revision: 1 });
    expect((await repository.getProvisionerState()).revision).toBe(2);
  });

  it("the whole table has one version record", async () => {
    const repository = await table.open("one");
    expect(await repository.getVersionRecord()).toMatchObject({
      schemaVersion: "1.0.0",
      lambdaVersion: undefined,
    });
    await repository.setVersionRecord({
      schemaVersion: "1.2.3",
      lambdaVersion: "0.1.0",
      updatedBy: "cli:0.1.0",
    });
    const other = await table.open("two");
    expect(await other.getVersionRecord()).toMatchObject({
      schemaVersion: "1.2.3",
      lambdaVersion: "0.1.0",
      updatedBy: "cli:0.1.0",
    });
  });
});
