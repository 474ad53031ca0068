import { expect, it } from "vitest";
import { ApplyConflictError, Limit, RateLimiterUnavailable } from "zae-limiter";
import { seededRandom } from "zae-limiter/testing";
import { raceWrites } from "../../../../contract/src/guarded-writes.ts";
import { describeWithEngine } from "../../support/engine.ts";
import { script, type ProxiedRequest } from "../../support/fault-proxy.ts";
import { useProxiedTable } from "../../support/proxied-table.ts";
import { pick } from "../../support/seeded/random-choice.ts";
import { getEach, seedsFromEnvironment } from "../../support/seeded/seeds.ts";

const RPM = [Limit.perMinute("rpm", 10)];
/** A long one spans the change of the revision, and reading the trail after it. */
const DELAYS_MS = [0, 0, 120];
const SEEDS = seedsFromEnvironment({ usual: 3 });

describeWithEngine("guarded writes on DynamoDB", (engine) => {
  const table = useProxiedTable(engine);

  it(`no write takes effect once another client has ended its revision, over ${SEEDS.count} seeds`, async () => {
    const writing = await table.open();
    const applying = await table.open();
    for (const seed of getEach(SEEDS)) {
      // Some writes are on their way for a while: one that was checked before would come too late.
      const random = seededRandom(seed);
      table.proxy.decide = ({ operation, input }) =>
        operation === "TransactWriteItems" && !JSON.stringify(input).includes("managed_system")
          ? { delayMs: pick(random, DELAYS_MS) }
          : undefined;
      await raceWrites({ writing, applying, seed });
    }
  });

  it("the check is the last item of the transaction that writes and records the change", async () => {
    const repository = await table.open();
    const sent = await table.sentDuring(async () => {
      await repository.setLimits("e", RPM, { ifRevision: 0 });
      await repository.setLimits("e", RPM);
    });
    const [guarded, free] = sent.filter(({ operation }) => operation === "TransactWriteItems");
    expect(listKinds(guarded!)).toEqual(["Put", "Put", "ConditionCheck"]);
    expect(listKinds(free!)).toEqual(["Put", "Put"]);
    expect(JSON.stringify(guarded)).toContain('"#PROVISIONER"');
  });

  it("a transaction that holds the state is waited for, and a lost answer is asked for again", async () => {
    const repository = await table.open();
    const other = await table.open();
    table.proxy.decide = script("TransactWriteItems", ["conflict", "in-progress", undefined]);
    await repository.setLimits("e", RPM, { ifRevision: 0 });
    expect(await repository.getLimits("e")).toEqual(RPM);
    // The write is made, its answer is lost, and the revision ends before it is asked for again.
    let lost: Promise<void> | undefined;
    table.proxy.decide = script("TransactWriteItems", ["lost-reply"]);
    table.proxy.observe = ({ operation }) => {
      if (operation === "TransactWriteItems")
        lost ??= other.getProvisionerState().then((state) => other.putProvisionerState(state));
    };
    await repository.setLimits("f", RPM, { ifRevision: 0 });
    await lost;
    table.proxy.observe = () => {};
    expect((await repository.getAuditEvents("f")).items).toHaveLength(1);
    await expect(repository.setLimits("f", RPM, { ifRevision: 0 })).rejects.toThrow(
      ApplyConflictError,
    );
    expect((await repository.getAuditEvents("f")).items).toHaveLength(1);
  });

  it("contention that does not end is unavailability, not a conflict of applies", async () => {
    const repository = await table.open();
    table.proxy.decide = ({ operation }) =>
      operation === "TransactWriteItems" ? "conflict" : undefined;
    await expect(repository.setLimits("e", RPM, { ifRevision: 0 })).rejects.toThrow(
      RateLimiterUnavailable,
    );
  });

  it("a stored state without a revision has revision 0", async () => {
    const repository = await table.open();
    const key = { PK: { S: `${repository.namespaceId}/SYSTEM#` }, SK: { S: "#PROVISIONER" } };
    await table.raw("PutItem", { Item: { ...key, managed_system: { BOOL: true } } });
    await repository.setLimits("e", RPM, { ifRevision: 0 });
    await expect(repository.setLimits("e", RPM, { ifRevision: 1 })).rejects.toThrow(
      ApplyConflictError,
    );
    const state = await repository.getProvisionerState();
    expect(state).toMatchObject({ revision: 0, managedSystem: true });
    await repository.putProvisionerState(state);
    await repository.setLimits("e", RPM, { ifRevision: 1 });
  });
});

function listKinds({ input }: ProxiedRequest): readonly string[] {
  return (input["TransactItems"] as readonly object[]).flatMap((item) => Object.keys(item));
}
