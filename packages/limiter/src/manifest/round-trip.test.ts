/*
 * What is written is read back, and what is exported and applied elsewhere is there: for every
 * declaration that the generator can make.
 */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { DeclaredLimits, Repository } from "zae-limiter";
import {
  applyLimits,
  exportLimits,
  buildManifest,
  planLimits,
  readManifest,
  type Manifest,
} from "zae-limiter/manifest";
import { MemoryRepository } from "zae-limiter/memory";
import { SqliteRepository } from "zae-limiter/sqlite";
import { declaredLimits, store } from "../../test/support/declared-limits.ts";
import { seedsFromEnvironment } from "../../test/support/seeded/seeds.ts";
import { closeLater, temporaryFile } from "../../test/support/temporary-file.ts";

const { count: RUNS } = seedsFromEnvironment({ usual: 15 });

describe("every declaration", { timeout: 20_000 + 500 * RUNS }, () => {
  it("is read back from the manifest that it is written as", () => {
    fc.assert(
      fc.property(declaredLimits(), (declared) => {
        expect(write(declared).declared).toEqual(declared);
      }),
      { numRuns: 2 * RUNS },
    );
  });

  it("that was exported can be planned, and nothing changes", async () => {
    await fc.assert(
      fc.asyncProperty(declaredLimits(), async (declared) => {
        const repository = new MemoryRepository();
        await store(repository, declared);
        const manifest = write(await exportLimits(repository));
        const { entries } = await planLimits(repository, manifest);
        expect(entries.filter(({ action }) => action !== "unchanged")).toEqual([]);
      }),
      { numRuns: RUNS },
    );
  });

  it("that was exported and applied to another repository is the same there", async () => {
    const file = closeLater(await SqliteRepository.open(temporaryFile()));
    let round = 0;
    await fc.assert(
      fc.asyncProperty(declaredLimits(), fc.boolean(), async (declared, isToFile) => {
        const stored = await file.namespace(await registered(file, `from-${(round += 1)}`));
        const [from, to] = isToFile
          ? [new MemoryRepository({ namespace: stored.namespaceName }), stored]
          : [stored, new MemoryRepository({ namespace: stored.namespaceName })];
        await store(from, declared);
        const exported = await exportLimits(from);
        await applyLimits(to, write(exported, to.namespaceName));
        expect(await exportLimits(to)).toEqual(exported);
      }),
      { numRuns: RUNS },
    );
  });
});

async function registered(repository: Repository, name: string): Promise<string> {
  await repository.registerNamespace(name);
  return name;
}

/** As a file would say it. */
function write(declared: DeclaredLimits, namespace = "default"): Manifest {
  const text = JSON.stringify(buildManifest(namespace, declared));
  const content: unknown = JSON.parse(text);
  return readManifest([{ file: "limits.json", content, findPosition: () => undefined }]);
}
