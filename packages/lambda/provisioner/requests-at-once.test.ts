/* Requests about one resource that run at the same time, on a repository in memory. */
import { expect, it } from "vitest";
import {
  getId,
  overridden,
  properties,
  success,
  ResourceWorld,
  type Opened,
} from "../test/support/resource-world.ts";
import type { Outcome } from "./answer.ts";

it("of two deliveries of one event at once, both succeed", async () => {
  const world = new ResourceWorld();
  const declared = properties("team-a", { "gpt-4": "10", "gpt-5": "20" });
  let second: Promise<Outcome> | undefined;
  const isWaitedFor = new Promise<void>((resolve) => (world.onSleep = resolve));
  // The second one overtakes the first, and is not done when the first one looks.
  world.wrapped = (repository) =>
    overridden(repository, "setResourceDefaults", async (resource, ...rest) => {
      if (second === undefined) {
        second = world.create(declared);
        await world.begun(2);
      } else if (resource === "gpt-5") await isWaitedFor;
      return repository.setResourceDefaults(resource, ...rest);
    });
  const first = await world.create(declared);
  expect(first).toEqual(success(getId("team-a"), { revision: 3 }));
  expect(await second).toEqual(success(getId("team-a"), { created: 2, revision: 3 }));
  expect(await world.stored("team-a")).toEqual({ "gpt-4": 10, "gpt-5": 20 });
});

it("a creation that CloudFormation no longer waits for does not bring back what was deleted", async () => {
  const world = new ResourceWorld();
  const declared = properties("team-a", { "gpt-4": "10", "gpt-5": "20" });
  world.wrapped = (repository) =>
    overridden(repository, "setResourceDefaults", async (resource, ...rest) => {
      if (resource === "gpt-5")
        expect(await world.delete(getId("team-a"), declared)).toEqual(
          success(getId("team-a"), { deleted: 1 }),
        );
      return repository.setResourceDefaults(resource, ...rest);
    });
  expect((await world.create(declared)).status).toBe("FAILED");
  expect(await world.stored("team-a")).toEqual({});
});

it("a creation that was given up while it planned does not begin", async () => {
  const world = new ResourceWorld();
  const declared = properties("team-a", { "gpt-4": "10" });
  const madeUp = "app-Limits-1ABCDEFGHIJKL";
  world.wrapped = firstTime("getLevel", async () => {
    expect(await world.delete(madeUp, declared)).toEqual(success(madeUp, { deleted: 0 }));
  });
  expect((await world.create(declared)).status).toBe("FAILED");
  expect(await world.stored("team-a")).toEqual({});
});

it("a creation that began while its deletion looked is deleted", async () => {
  const world = new ResourceWorld();
  const declared = properties("team-a", { "gpt-4": "10" });
  await world.root.registerNamespace("team-a");
  world.wrapped = firstTime("putProvisionerState", async () => {
    expect((await world.create(declared)).status).toBe("SUCCESS");
  });
  const madeUp = "app-Limits-1ABCDEFGHIJKL";
  expect(await world.delete(madeUp, declared)).toEqual(success(madeUp, { deleted: 1 }));
  expect(await world.stored("team-a")).toEqual({});
});

it("an update that was given up while it planned does not begin after it was rolled back", async () => {
  const world = new ResourceWorld();
  const [before, after] = [
    properties("team-a", { "gpt-4": "10" }),
    properties("team-a", { "gpt-4": "20" }),
  ];
  const id = getId("team-a");
  await world.create(before);
  world.wrapped = firstTime("getLevel", async () => {
    expect(await world.update(id, after, before)).toEqual(success(id, { unchanged: 1 }));
  });
  expect((await world.update(id, before, after)).status).toBe("FAILED");
  expect(await world.stored("team-a")).toEqual({ "gpt-4": 10 });
});

it("an update that began while its rollback looked is rolled back", async () => {
  const world = new ResourceWorld();
  const [before, after] = [
    properties("team-a", { "gpt-4": "10" }),
    properties("team-a", { "gpt-4": "20" }),
  ];
  const id = getId("team-a");
  await world.create(before);
  world.wrapped = firstTime("putProvisionerState", async () => {
    expect((await world.update(id, before, after)).status).toBe("SUCCESS");
  });
  expect(await world.update(id, after, before)).toEqual(success(id, { updated: 1 }));
  expect(await world.stored("team-a")).toEqual({ "gpt-4": 10 });
});

it("deletes nothing if the namespace is taken over meanwhile", async () => {
  const world = new ResourceWorld();
  const declared = properties("team-a", { "gpt-4": "10" });
  await world.create(declared);
  let isFirst = true;
  world.wrapped = (repository) =>
    overridden(repository, "getProvisionerState", async () => {
      const state = await repository.getProvisionerState();
      if (isFirst) {
        isFirst = false;
        await world.create(declared, "Renamed");
      }
      return state;
    });
  expect((await world.delete(getId("team-a"), declared)).status).toBe("SUCCESS");
  expect(await world.stored("team-a")).toEqual({ "gpt-4": 10 });
});

/** Does something before the first call of a method. */
function firstTime(name: "getLevel" | "putProvisionerState", work: () => Promise<void>) {
  let isFirst = true;
  return (repository: Opened): Opened =>
    overridden(repository, name, async (...values: never[]): Promise<never> => {
      if (isFirst) {
        isFirst = false;
        await work();
      }
      const method = repository[name] as (...all: never[]) => Promise<never>;
      return method.apply(repository, values);
    });
}
