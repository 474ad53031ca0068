import { describe, expect, it } from "vitest";
import { Limit, type Repository } from "zae-limiter";
import { exportLimits, type ExportProgress } from "zae-limiter/manifest";
import { MemoryRepository } from "zae-limiter/memory";
import { pausedRepository } from "../../test/support/paused-repository.ts";

const RPM = Limit.perMinute("rpm", 10);

describe("an export of many entities", () => {
  it("reads each level once, some at a time, and each record once", async () => {
    const repository = await manyEntities(2500);
    const counted = new Counted();
    const { entities } = await exportLimits(counted.get(repository));
    expect(Object.keys(entities).length).toBe(2500);
    expect(counted.levels).toBe(2500 + 1);
    expect(counted.mostAtOnce).toBe(100);
    expect(counted.calls).toEqual({
      getSystemDefaults: 1,
      listResourcesWithDefaults: 1,
      listResourcesWithEntityConfigs: 1,
      listEntities: 2,
      listEntitiesWithCustomLimits: 3,
      getLevel: 2501,
    });
  });

  it("reports progress", async () => {
    const seen: ExportProgress[] = [];
    await exportLimits(await manyEntities(250), { onProgress: (progress) => seen.push(progress) });
    expect(seen[0]).toEqual({ entities: 0, levels: 1 });
    expect(seen.at(-1)).toEqual({ entities: 250, levels: 251 });
    expect(seen.map(({ levels }) => levels)).toEqual([1, 1, 101, 201, 251, 251]);
  });

  it("stops at a signal, and reads nothing for one that was given before", async () => {
    const repository = await manyEntities(1000);
    const counted = new Counted();
    const stopped = new Error("stopped");
    const before = exportLimits(counted.get(repository), { signal: AbortSignal.abort(stopped) });
    await expect(before).rejects.toBe(stopped);
    expect(counted.calls).toEqual({});
    const { signal } = new AbortController();
    const misspelt = { signal, onprogress: () => undefined };
    await expect(exportLimits(counted.get(repository), misspelt)).rejects.toThrow(/onProgress/);
    expect(counted.calls).toEqual({});
    const stopping = new AbortController();
    const meanwhile = exportLimits(counted.get(repository), {
      signal: stopping.signal,
      onProgress: ({ levels }) => void (levels > 200 && stopping.abort(stopped)),
    });
    await expect(meanwhile).rejects.toBe(stopped);
    expect(counted.levels).toBeLessThan(500);
  });
});

it("leaves out limits that were deleted since they were listed", async () => {
  const repository = new MemoryRepository();
  await repository.setLimits("kept", [RPM]);
  await repository.setLimits("deleted", [RPM]);
  await repository.setResourceDefaults("gpt-4", [RPM]);
  const meanwhile = pausedRepository(repository, async (operation) => {
    if (operation !== "getLevel") return;
    await repository.deleteLimits("deleted");
    await repository.deleteResourceDefaults("gpt-4");
  });
  expect(await exportLimits(meanwhile)).toEqual({
    resources: {},
    entities: { kept: { resources: { _default_: { limits: [RPM], inherit: true } } } },
  });
});

it("keeps a record that has only defaults", async () => {
  const repository = new MemoryRepository();
  const level = { limits: [RPM], inherit: true };
  await repository.createEntity("recorded");
  for (const id of ["limited", "recorded"]) await repository.setLimits(id, [RPM]);
  expect((await exportLimits(repository)).entities).toEqual({
    limited: { resources: { _default_: level } },
    recorded: { name: "recorded", resources: { _default_: level } },
  });
});

/** Half of them have a record. */
async function manyEntities(count: number): Promise<Repository> {
  const repository = new MemoryRepository();
  await repository.setResourceDefaults("gpt-4", [RPM]);
  for (let index = 0; index < count; index += 1) {
    if (index % 2 === 0) await repository.createEntity(`key-${index}`);
    await repository.setLimits(`key-${index}`, [RPM]);
  }
  return repository;
}

/** Counts the calls of a repository, and how many of `getLevel` are under way at once. */
class Counted {
  readonly calls: Record<string, number> = {};
  mostAtOnce = 0;
  #atOnce = 0;

  get levels(): number {
    return this.calls["getLevel"] ?? 0;
  }

  get(repository: Repository): Repository {
    return pausedRepository(repository, async (operation) => {
      this.calls[operation] = (this.calls[operation] ?? 0) + 1;
      if (operation !== "getLevel") return;
      this.#atOnce += 1;
      this.mostAtOnce = Math.max(this.mostAtOnce, this.#atOnce);
      await Promise.resolve();
      this.#atOnce -= 1;
    });
  }
}
