import assert from "node:assert/strict";
import { expect, it } from "vitest";
import type { Repository } from "zae-limiter";
import { applyLimits, planLimits } from "zae-limiter/manifest";
import { MemoryRepository } from "zae-limiter/memory";
import { faultyRepository } from "zae-limiter/testing";
import { withoutStackTraces } from "../support/seeded/without-stack-traces.ts";
import { checkBetween } from "./history.ts";
import { applyInterrupted, INTERRUPTIONS, type Interruption } from "./interruption.ts";
import { apply, namedBy, type Content, type Owned } from "./model.ts";
import { buildManifest, type Spec, type SpecLevel } from "./spec.ts";
import { buildLimits, storedContent } from "./stored-content.ts";

const level = (rate: number, inherit = false): SpecLevel => ({
  limits: { rpm: `${rate}/min` },
  inherit,
});

/** Stored before, then being applied, then applied instead of it: they share some of everything. */
const BEFORE: Spec = {
  system: { limits: { rpm: "1/min" }, on_unavailable: "allow" },
  resources: { stays: level(1), changes: level(1), goes: level(1) },
  entities: { acme: { name: "Acme", resources: { goes: level(1), changes: level(1) } } },
};
const NEXT: Spec = {
  system: { audit_retention_days: 30 },
  resources: { stays: level(1), changes: level(2, true), comes: level(2) },
  entities: {
    "key-1": { parent: "acme", cascade: true, resources: { _default_: level(2) } },
    acme: { name: "Acme Inc", metadata: { plan: "gold" }, resources: { changes: level(2) } },
  },
};
const OTHER: Spec = {
  system: { limits: { tpm: "3/min" }, usage_retention_days: 7 },
  resources: { changes: level(3), adopted: level(3) },
  entities: { "key-1": { resources: { other: level(3) } } },
};

it("an apply that is cut at any operation, in any way, is completed by the next one, of any manifest", async () => {
  const operations = await listOperations((await open()).repository);
  expect(operations).toBeGreaterThan(30);
  const met = new Set<string>();
  await withoutStackTraces(async () => {
    for (const kind of INTERRUPTIONS)
      for (let at = 1; at <= operations; at += 1) {
        const progress = await checkCut({ kind, at }, NEXT);
        // If it has left nothing behind, another manifest is applied as if it had never been.
        if (progress !== "nothing") await checkCut({ kind, at }, OTHER);
        met.add(`${kind}: ${progress}`);
      }
  });
  expect([...met].toSorted()).toEqual([
    "error-after: begun",
    "error-after: nothing",
    "error-after: over",
    "error-before: begun",
    "error-before: nothing",
    "gone: begun",
    "gone: nothing",
  ]);
});

/** Cuts an apply, and checks what the next one makes of it. */
async function checkCut(
  interruption: Interruption,
  following: Spec,
): ReturnType<typeof applyInterrupted> {
  const { repository, content, owned } = await open();
  const progress = await applyInterrupted(repository, buildManifest(NEXT), interruption);
  const cut = await storedContent(repository);
  checkBetween(cut, content, apply(NEXT, content, owned));
  await applyLimits(repository, buildManifest(following));
  const all = new Set([...owned, ...(progress === "nothing" ? [] : namedBy(NEXT))]);
  assert.deepEqual(
    await storedContent(repository),
    apply(following, cut, all),
    `${JSON.stringify(interruption)}, then ${following === NEXT ? "the same" : "another"} manifest`,
  );
  const { entries, pending } = await planLimits(repository, buildManifest(following));
  assert.ok(entries.every(({ action }) => action === "unchanged"));
  assert.equal(pending, undefined);
  return progress;
}

/** A store with an applied manifest, a change by hand, and neighbours that are in no manifest. */
async function open(): Promise<{
  readonly repository: Repository;
  readonly content: Content;
  readonly owned: Owned;
}> {
  const repository = new MemoryRepository();
  await applyLimits(repository, buildManifest(BEFORE));
  await repository.setResourceDefaults("changes", buildLimits({ rpm: "9/min" }));
  await repository.setResourceDefaults("adopted", buildLimits({ rpm: "9/min" }));
  await repository.setResourceDefaults("neighbour", buildLimits({ rpm: "9/min" }));
  await repository.setLimits("acme", buildLimits({ rpm: "9/min" }), { resource: "neighbour" });
  return { repository, content: await storedContent(repository), owned: namedBy(BEFORE) };
}

async function listOperations(repository: Repository): Promise<number> {
  let operations = 0;
  const counting = faultyRepository(repository, () => void (operations += 1));
  await applyLimits(counting, buildManifest(NEXT));
  return operations;
}
