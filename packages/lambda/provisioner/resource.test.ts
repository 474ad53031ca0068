/* The life of a resource, on a repository in memory. */
import { expect, it } from "vitest";
import { Limit, RateLimiterUnavailable } from "zae-limiter";
import {
  getId,
  overridden,
  properties,
  success,
  ResourceWorld,
} from "../test/support/resource-world.ts";

it("creates, updates and deletes limits, and changes nothing when nothing differs [W-64]", async () => {
  const world = new ResourceWorld();
  const [first, second] = [
    properties("team-a", { "gpt-4": "10", "gpt-3": "5" }),
    properties("team-a", { "gpt-4": "20" }),
  ];
  const id = getId("team-a");
  expect(await world.create(first)).toEqual(success(id, { created: 2 }));
  expect(await world.stored("team-a")).toEqual({ "gpt-4": 10, "gpt-3": 5 });
  const unchanged = { created: 0, updated: 0, deleted: 0, unchanged: 2, revision: 2 };
  for (const again of [await world.create(first), await world.update(id, first, first)])
    expect(again).toEqual(success(id, unchanged));
  expect(await world.update(id, first, second)).toEqual(success(id, { updated: 1, deleted: 1 }));
  expect(await world.stored("team-a")).toEqual({ "gpt-4": 20 });
  expect(await world.delete(id, second)).toEqual(success(id, { deleted: 1 }));
  expect(await world.stored("team-a")).toEqual({});
  expect(await world.delete(id, second)).toEqual(success(id, { deleted: 0 }));
});

it("does not touch what it never declared", async () => {
  const world = new ResourceWorld();
  const declared = properties("default", { "gpt-4": "10" });
  await world.root.setResourceDefaults("by-hand", [Limit.perMinute("rpm", 7)]);
  await world.create(declared);
  await world.delete(getId("default"), declared);
  expect(await world.stored("default")).toEqual({ "by-hand": 7 });
});

it("another namespace is another resource, and the old one takes only its own limits with it", async () => {
  const world = new ResourceWorld();
  const [before, after] = [
    properties("team-a", { "gpt-4": "10" }),
    properties("team-b", { "gpt-4": "20" }),
  ];
  await world.create(before);
  expect(await world.update(getId("team-a"), before, after)).toEqual(
    success(getId("team-b"), { created: 1 }),
  );
  expect(await world.stored("team-a")).toEqual({ "gpt-4": 10 });
  expect(await world.delete(getId("team-a"), before)).toEqual(
    success(getId("team-a"), { deleted: 1 }),
  );
  expect([await world.stored("team-a"), await world.stored("team-b")]).toEqual([
    {},
    { "gpt-4": 20 },
  ]);
});

it("a renamed logical id takes over, and the deletion of the old one deletes nothing", async () => {
  const world = new ResourceWorld();
  const declared = properties("team-a", { "gpt-4": "10" });
  await world.create(declared);
  const renamed = await world.create(declared, "Renamed");
  expect(renamed).toEqual(success(getId("team-a", "Renamed"), { created: 0, unchanged: 1 }));
  expect(await world.delete(getId("team-a"), declared)).toEqual(
    success(getId("team-a"), { deleted: 0 }),
  );
  expect(await world.stored("team-a")).toEqual({ "gpt-4": 10 });
});

it.each([
  [
    "a wrong number",
    properties("team-a", { "gpt-4": "many" }),
    "Properties.Manifest:1:55: Invalid resources.gpt-4.limits.rpm",
  ],
  ["an unknown property", { Namespace: "team-a" }, "Properties.Namespace: is not"],
  ["no namespace", { Manifest: "resources: {}" }, "Properties.Manifest:1:1"],
  ["no properties", undefined, "Properties"],
  ["a text that is not YAML", { Manifest: "a: [" }, "Properties.Manifest:1"],
])(
  "a creation that failed by %s is rolled back, and leaves nothing [W-64]",
  async (_, wrong, why) => {
    const world = new ResourceWorld();
    const failed = await world.send({ RequestType: "Create", ResourceProperties: wrong });
    expect(failed).toEqual({
      status: "FAILED",
      physicalId: expect.stringMatching(/^limits\/.+\/limits-provisioner\/[0-9a-f]{8}$/) as unknown,
      reason: expect.stringContaining(why) as unknown,
    });
    const { physicalId: id } = failed;
    expect(await world.delete(id, wrong as object)).toEqual(success(id, { deleted: 0 }));
    expect(await world.stored("team-a")).toBeUndefined();
  },
);

it("an update that failed keeps the resource, and the next one continues it [W-64]", async () => {
  const world = new ResourceWorld();
  const [before, after] = [
    properties("team-a", { "gpt-4": "10" }),
    properties("team-a", { "gpt-4": "20", "gpt-5": "30" }),
  ];
  await world.create(before);
  failWrites(world, "gpt-5");
  const failed = await world.update(getId("team-a"), before, after);
  expect(failed).toEqual({
    status: "FAILED",
    physicalId: getId("team-a"),
    reason: expect.stringMatching(/1 of 2 changes .*Left: create resource gpt-5\.$/s) as unknown,
  });
  const repository = await world.root.namespace("team-a");
  const { applied, pending } = await repository.getProvisionerState();
  expect(Object.keys(applied!.resources)).toEqual(["gpt-4"]);
  expect(Object.keys(pending!.declared.resources)).toEqual(["gpt-4", "gpt-5"]);

  world.wrapped = (same) => same;
  expect(await world.update(getId("team-a"), before, after)).toEqual(
    success(getId("team-a"), { created: 1, unchanged: 1 }),
  );
});

it("a creation that failed in the middle is rolled back whole", async () => {
  const world = new ResourceWorld();
  const declared = properties("team-a", { "gpt-4": "20", "gpt-5": "30" });
  failWrites(world, "gpt-5");
  const { physicalId: id } = await world.create(declared);
  expect(await world.stored("team-a")).toEqual({ "gpt-4": 20 });
  expect(await world.delete(id, declared)).toEqual(success(id, { deleted: 1 }));
  expect(await world.stored("team-a")).toEqual({});
});

it("a move to another namespace that failed is taken back by the rollback", async () => {
  const world = new ResourceWorld();
  const [before, after] = [
    properties("team-a", { "gpt-4": "10" }),
    properties("team-b", { "gpt-4": "20", "gpt-5": "30" }),
  ];
  await world.create(before);
  failWrites(world, "gpt-5");
  const { physicalId: id, status } = await world.update(getId("team-a"), before, after);
  expect([id, status]).toEqual([getId("team-a"), "FAILED"]);
  expect(await world.stored("team-b")).toEqual({ "gpt-4": 20 });
  // CloudFormation goes back, and never learned of the resource of the other namespace.
  expect(await world.update(id, after, before)).toEqual(success(id, { unchanged: 1 }));
  expect([await world.stored("team-a"), await world.stored("team-b")]).toEqual([
    { "gpt-4": 10 },
    {},
  ]);
});

it("a move that failed and is not rolled back is taken back by a move to a third namespace", async () => {
  const world = new ResourceWorld();
  const [before, failed, after] = [
    properties("team-a", { "gpt-4": "10" }),
    properties("team-b", { "gpt-4": "20", "gpt-5": "30" }),
    properties("team-c", { "gpt-4": "40" }),
  ];
  await world.create(before);
  failWrites(world, "gpt-5");
  const { physicalId: id } = await world.update(getId("team-a"), before, failed);
  expect(await world.update(id, failed, after)).toEqual(success(getId("team-c"), { created: 1 }));
  expect(await world.delete(id, failed)).toEqual(success(id, { deleted: 1 }));
  const namespaces = ["team-a", "team-b", "team-c"];
  expect(await Promise.all(namespaces.map((name) => world.stored(name)))).toEqual([
    {},
    {},
    { "gpt-4": 40 },
  ]);
});

it("deletes what was created without an answer, by the properties", async () => {
  const world = new ResourceWorld();
  const declared = properties("team-a", { "gpt-4": "10" });
  await world.create(declared);
  const madeUp = "app-Limits-1ABCDEFGHIJKL";
  expect(await world.delete(madeUp, declared)).toEqual(success(madeUp, { deleted: 1 }));
  expect(await world.stored("team-a")).toEqual({});
});

it("deletes nothing for an id of another program, or of another table", async () => {
  const world = new ResourceWorld();
  const declared = properties("team-a", { "gpt-4": "10" });
  await world.create(declared);
  for (const id of ["limits/team-a/limits-provisioner", getId("team-a").replace("limits", "other")])
    expect(await world.delete(id, declared)).toEqual(success(id, { deleted: 0 }));
  expect(await world.stored("team-a")).toEqual({ "gpt-4": 10 });
});

it("a deletion succeeds without a table; a creation fails", async () => {
  const world = new ResourceWorld();
  world.isMissing = true;
  const declared = properties("team-a", { "gpt-4": "10" });
  expect(await world.create(declared)).toMatchObject({ reason: "There is no table." });
  expect(await world.delete(getId("team-a"), declared)).toEqual(success(getId("team-a"), {}));
});

it("a deletion registers no namespace", async () => {
  const world = new ResourceWorld();
  const declared = properties("team-a", { "gpt-4": "10" });
  expect(await world.delete(getId("team-a"), declared)).toEqual(success(getId("team-a"), {}));
  expect(await world.stored("team-a")).toBeUndefined();
});

/** Lets writes of a resource's limits fail from now on. */
function failWrites(world: ResourceWorld, failing: string): void {
  world.wrapped = (repository) =>
    overridden(repository, "setResourceDefaults", async (resource, ...rest) => {
      if (resource === failing) throw new RateLimiterUnavailable("The table is throttled.");
      return repository.setResourceDefaults(resource, ...rest);
    });
}
