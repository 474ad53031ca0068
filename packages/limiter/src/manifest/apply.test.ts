import { expect, it } from "vitest";
import { ApplyConflictError, Limit, ValidationError } from "zae-limiter";
import { applyLimits, ApplyError, planLimits, type ApplyProgress } from "zae-limiter/manifest";
import { MemoryRepository } from "zae-limiter/memory";
import { faultyRepository } from "zae-limiter/testing";
import { manifestFor } from "../../test/support/manifests.ts";
import { pausedRepository } from "../../test/support/paused-repository.ts";

const RPM = Limit.perMinute("rpm", 100);
const TPM = Limit.perMinute("tpm", 1000, { burst: 1500 });

/** Something at every level, and a parent that is declared after its child. */
const TEAM = manifestFor({
  system: { limits: [RPM], onUnavailable: "allow", auditRetentionDays: 30 },
  resources: { "gpt-4": { limits: [TPM], inherit: true } },
  entities: {
    "key-1": {
      parentId: "acme",
      cascade: true,
      resources: { _default_: { limits: [RPM], inherit: false } },
    },
    acme: { name: "Acme Inc", metadata: { plan: "gold" }, resources: {} },
  },
});

it("reports each change, and stores what was applied", async () => {
  const repository = new MemoryRepository();
  const progress: ApplyProgress[] = [];
  const report = await applyLimits(repository, TEAM, {
    principal: "ci",
    onProgress: (now) => progress.push(now),
  });
  expect(report).toEqual({ revision: 2, created: 5, updated: 0, deleted: 0, unchanged: 0 });
  expect(progress.map(({ done, total, entry }) => [done, total, entry.entityId])).toEqual([
    [1, 5, "acme"],
    [2, 5, "key-1"],
    [3, 5, undefined],
    [4, 5, undefined],
    [5, 5, "key-1"],
  ]);
  const state = await repository.getProvisionerState();
  expect(state).toMatchObject({ applied: TEAM.declared, appliedHash: TEAM.hash, revision: 2 });
  expect(state.pending).toBeUndefined();
});

it("plans limits that no store decides yet, but refuses to apply them, and writes nothing", async () => {
  const repository = new MemoryRepository();
  const running = Limit.inFlight("running", 5);
  const manifest = manifestFor({
    system: { limits: [RPM] },
    resources: { gpt: { limits: [running], inherit: true } },
    entities: {},
  });
  const { entries } = await planLimits(repository, manifest);
  expect(entries.flatMap(({ values }) => values)).toContainEqual(
    expect.objectContaining({ name: "limits.running", after: "5/inflight" }),
  );
  await expect(applyLimits(repository, manifest)).rejects.toThrow(
    "Invalid running.kind: is not supported yet",
  );
  expect(await repository.getProvisionerState()).toMatchObject({ revision: 0 });
  expect((await repository.getSystemDefaults()).limits).toEqual([]);
});

it("nothing to do writes nothing, unless the state has to learn something", async () => {
  const repository = new MemoryRepository();
  const calls: string[] = [];
  const watched = faultyRepository(repository, (operation) => void calls.push(operation));
  const puts = async (work: Promise<unknown>): Promise<number> => {
    calls.length = 0;
    await work;
    expect(calls.filter((name) => /^(set|delete|create|update)/.test(name))).toEqual([]);
    return calls.filter((name) => name === "putProvisionerState").length;
  };
  await applyLimits(repository, TEAM);
  expect(await puts(applyLimits(watched, TEAM))).toBe(0);
  expect(await puts(applyLimits(watched, TEAM, { owner: "stack" }))).toBe(2);
  expect(await puts(applyLimits(watched, TEAM, { owner: "stack" }))).toBe(0);
  expect((await repository.getProvisionerState()).owner).toBe("stack");
  expect(await puts(applyLimits(watched, TEAM))).toBe(2);
  expect((await repository.getProvisionerState()).owner).toBeUndefined();
  // As another program leaves it, which stores no values.
  const { applied: _, ...state } = await repository.getProvisionerState();
  await repository.putProvisionerState(state);
  expect(await puts(applyLimits(watched, TEAM))).toBe(2);
});

it("an unknown option is rejected before anything is read or written", async () => {
  const repository = new MemoryRepository();
  const plan = await planLimits(repository, TEAM);
  const misspelt = { principal: "ci", agreed: plan };
  await expect(applyLimits(repository, TEAM, misspelt)).rejects.toThrow(ValidationError);
  expect(await repository.getProvisionerState()).toMatchObject({ revision: 0 });
});

it("a failed change says what is done, what failed and why, and the next apply continues", async () => {
  const inner = new MemoryRepository();
  const failing = faultyRepository(inner, (operation) =>
    operation === "setResourceDefaults" ? "error-before" : undefined,
  );
  const error = await catchError(applyLimits(failing, TEAM, { principal: "ci" }));
  expect(error).toBeInstanceOf(ApplyError);
  expect(error).toMatchObject({ code: "ERR_LIMITER_APPLY", done: 3, left: [{}, {}] });
  expect((error as ApplyError).left[0]).toMatchObject({ level: "resource", resource: "gpt-4" });
  expect((error as ApplyError).message).toBe(
    "3 of 5 changes were made. Creating the limits of resource 'gpt-4' failed: Injected fault: setResourceDefaults did not reach the store. Applying the manifest again continues with what is left.",
  );
  expect(await inner.getProvisionerState()).toMatchObject({
    revision: 1,
    lastApplied: undefined,
    appliedHash: undefined,
    pending: { hash: TEAM.hash, principal: "ci", declared: TEAM.declared },
  });
  expect((await planLimits(inner, TEAM)).pending).toMatchObject({ hash: TEAM.hash });
  expect(await applyLimits(inner, TEAM)).toMatchObject({ created: 2, unchanged: 3 });
  expect((await planLimits(inner, TEAM)).pending).toBeUndefined();
});

it("an abort stops between two changes, or before anything is written", async () => {
  const repository = new MemoryRepository();
  const controller = new AbortController();
  const stopped = await catchError(
    applyLimits(repository, TEAM, {
      signal: controller.signal,
      onProgress: ({ done }) => {
        if (done === 2) controller.abort(new Error("Ctrl-C"));
      },
    }),
  );
  expect(stopped).toMatchObject({ done: 2, left: [{}, {}, {}], cause: { message: "Ctrl-C" } });
  expect((stopped as ApplyError).message).toMatch(
    /^2 of 5 changes were made. It was stopped: Ctrl-C. Applying the manifest again/,
  );
  const state = await repository.getProvisionerState();
  expect(state.pending?.hash).toBe(TEAM.hash);
  const again = await catchError(applyLimits(repository, TEAM, { signal: controller.signal }));
  expect(again).toMatchObject({ done: 0, left: [{}, {}, {}] });
  expect(await repository.getProvisionerState()).toEqual(state);
});

it("a plan that was agreed to is applied as it is, or not at all", async () => {
  const repository = new MemoryRepository();
  const plan = await planLimits(repository, TEAM);
  await repository.setResourceDefaults("gpt-4", [RPM]);
  const changed = await catchError(applyLimits(repository, TEAM, { plan }));
  expect(changed).toBeInstanceOf(ApplyError);
  expect((changed as ApplyError).message).toMatch(/changed since the plan was made/);
  expect((await repository.getProvisionerState()).revision).toBe(0);
  const current = await planLimits(repository, TEAM);
  await applyLimits(repository, TEAM, { plan: current });
  const stale = await catchError(applyLimits(repository, TEAM, { plan: current }));
  expect(stale).toBeInstanceOf(ApplyConflictError);
});

it("a change by hand between the agreed plan and the first change ends the apply, and the state says so", async () => {
  const inner = new MemoryRepository();
  await applyLimits(
    inner,
    manifestFor({ resources: { search: { limits: [RPM], inherit: false } } }),
  );
  const before = await inner.getProvisionerState();
  const plan = await planLimits(inner, TEAM);
  const repository = pausedRepository(inner, async (operation) => {
    if (operation === "putProvisionerState") await inner.setResourceDefaults("gpt-4", [RPM]);
  });
  const error = await catchError(applyLimits(repository, TEAM, { plan }));
  expect((error as ApplyError).message).toMatch(/changed since the plan was made/);
  expect(await inner.getProvisionerState()).toEqual({ ...before, revision: before.revision + 2 });
  expect((await inner.getSystemDefaults()).limits).toEqual([]);
});

it("an apply that is overtaken writes nothing any more, not even the state", async () => {
  const repository = new MemoryRepository();
  const other = manifestFor({ resources: { search: { limits: [TPM], inherit: false } } });
  const paused = pausedRepository(repository, async (operation) => {
    if (operation === "setResourceDefaults") await applyLimits(repository, other);
  });
  const error = await catchError(applyLimits(paused, TEAM));
  expect(error).toBeInstanceOf(ApplyConflictError);
  expect(error).toMatchObject({ code: "ERR_LIMITER_APPLY_CONFLICT" });
  expect(await repository.listResourcesWithDefaults()).toEqual(["search"]);
  expect(await repository.getLimits("key-1")).toEqual([]);
  expect((await repository.getProvisionerState()).applied).toEqual(other.declared);
  expect(await applyLimits(repository, other)).toMatchObject({ unchanged: 1, revision: 3 });
});

it("a setting of an interrupted apply is reset even if the apply after that is interrupted too", async () => {
  const inner = new MemoryRepository();
  const allow = manifestFor({ system: { onUnavailable: "allow" } });
  await catchError(applyLimits(failingAt(inner, "setSystemDefaults", "error-after"), allow));
  expect((await inner.getSystemDefaults()).onUnavailable).toBe("allow");
  const other = manifestFor({ resources: { search: { limits: [TPM], inherit: false } } });
  await catchError(applyLimits(failingAt(inner, "setResourceDefaults", "error-before"), other));
  // Nothing of this is drift: only an apply has changed it.
  const { entries } = await planLimits(inner, manifestFor({}));
  expect(entries.map(({ level, action, drift }) => [level, action, drift])).toEqual([
    ["system", "delete", false],
  ]);
  await applyLimits(inner, other);
  expect((await inner.getSystemDefaults()).onUnavailable).toBe("block");
});

function failingAt(
  repository: MemoryRepository,
  name: string,
  fault: "error-before" | "error-after",
): ReturnType<typeof faultyRepository> {
  return faultyRepository(repository, (operation) => (operation === name ? fault : undefined));
}

async function catchError(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => expect.unreachable("should have failed"),
    (error: unknown) => error,
  );
}
