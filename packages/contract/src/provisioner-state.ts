import assert from "node:assert/strict";
import { inspect } from "node:util";
import {
  ApplyConflictError,
  type DeclaredLimits,
  Limit,
  type PendingApply,
  type ProvisionerState,
  RateLimiterUnavailable,
  ValidationError,
} from "zae-limiter";
import { failsWith } from "./calls.ts";
import type { Topic } from "./world.ts";

/**
 * The state of declared limits of a namespace: what they manage, their last values, and pending
 * changes.
 */
export const provisionerStateTopic: Topic = (test) => {
  test("the provisioner's state is empty until it is put, and reads back", async ({
    repository,
    clock,
  }) => {
    const empty = await repository.getProvisionerState();
    assert.deepEqual(empty, {
      managedSystem: false,
      managedResources: [],
      managedEntities: {},
      lastApplied: undefined,
      appliedHash: undefined,
      revision: 0,
    });
    const applied = {
      managedSystem: true,
      managedResources: ["gpt-4"],
      managedEntities: { "key-1": ["gpt-4", "_default_"], constructor: [] },
      lastApplied: new Date(clock.now()),
      appliedHash: "abc",
      revision: 0,
    };
    await repository.putProvisionerState(applied);
    assert.deepEqual(await repository.getProvisionerState(), { ...applied, revision: 1 });
  });

  test("of two concurrent changes, one is rejected and has to re-plan", async ({ repository }) => {
    const state = await repository.getProvisionerState();
    const answers = await Promise.allSettled([
      repository.putProvisionerState({ ...state, appliedHash: "first" }),
      repository.putProvisionerState({ ...state, appliedHash: "second" }),
    ]);
    assert.equal(answers.filter(({ status }) => status === "fulfilled").length, 1);
    assert.equal((await repository.getProvisionerState()).revision, 1);
    const before = await repository.getProvisionerState();
    await failsWith(ApplyConflictError, () =>
      repository.putProvisionerState({ ...state, appliedHash: "stale" }),
    );
    await failsWith(ApplyConflictError, () =>
      repository.putProvisionerState({ ...state, revision: 7 }),
    );
    assert.deepEqual(await repository.getProvisionerState(), before);
    await repository.putProvisionerState({ ...before, appliedHash: "third" });
    assert.deepEqual(await repository.getProvisionerState(), {
      ...before,
      appliedHash: "third",
      revision: 2,
    });
  });

  test("the provisioner's state belongs to its namespace", async ({ repository }) => {
    await repository.registerNamespace("tenant-a");
    const tenant = await repository.namespace("tenant-a");
    await tenant.putProvisionerState({
      ...(await tenant.getProvisionerState()),
      managedSystem: true,
    });
    assert.equal((await repository.getProvisionerState()).revision, 0);
  });

  test("applied and pending limits and the owner read back exactly", async ({
    repository,
    clock,
  }) => {
    const state: ProvisionerState = {
      ...(await repository.getProvisionerState()),
      lastApplied: new Date(clock.now()),
      appliedHash: "sha256:1",
      applied: DECLARED,
      pending: { ...PENDING, startedAt: new Date(clock.now() + 1), principal: "ci" },
      owner: "limits/team-a/limits-provisioner/0a1b2c3d",
    };
    await repository.putProvisionerState(state);
    assert.deepEqual(await repository.getProvisionerState(), { ...state, revision: 1 });
    const empty = { resources: {}, entities: {} };
    const next: ProvisionerState = { ...state, revision: 1, applied: empty, pending: PENDING };
    await repository.putProvisionerState(next);
    assert.deepEqual(await repository.getProvisionerState(), { ...next, revision: 2 });
  });

  test("undefined fields are not stored, and removed fields stay removed", async ({
    repository,
  }) => {
    const empty = await repository.getProvisionerState();
    const undefinedParts = { applied: undefined, pending: undefined, owner: undefined };
    await repository.putProvisionerState({ ...empty, ...undefinedParts });
    assert.deepEqual(await repository.getProvisionerState(), { ...empty, revision: 1 });
    const { principal: _, ...unattributed } = PENDING;
    const system = { limits: undefined, onUnavailable: "allow" } as unknown as { limits: [] };
    const entity = { parentId: undefined, name: "Acme", resources: {} } as unknown as {
      resources: Record<string, never>;
    };
    await repository.putProvisionerState({
      ...empty,
      revision: 1,
      applied: { system, resources: {}, entities: { acme: entity } },
      pending: { ...unattributed, principal: undefined },
    });
    assert.deepEqual(await repository.getProvisionerState(), {
      ...empty,
      revision: 2,
      applied: {
        system: { onUnavailable: "allow" },
        resources: {},
        entities: { acme: { name: "Acme", resources: {} } },
      },
      pending: unattributed,
    });
    await repository.putProvisionerState({ ...empty, revision: 2 });
    assert.deepEqual(await repository.getProvisionerState(), { ...empty, revision: 3 });
  });

  test("a state of many entities reads back whole, and so does a small one after it", async ({
    repository,
  }) => {
    const empty = await repository.getProvisionerState();
    const many = {
      ...empty,
      managedEntities: Object.fromEntries(entityIds(700).map((id) => [id, ["gpt-4"]])),
      applied: buildEntities(700, "before"),
      pending: { ...PENDING, declared: buildEntities(700, "after – 😀") },
    };
    await repository.putProvisionerState(many);
    assert.deepEqual(await repository.getProvisionerState(), { ...many, revision: 1 });
    await repository.putProvisionerState({ ...many, pending: undefined, revision: 1 });
    const { pending: _, ...settled } = many;
    assert.deepEqual(await repository.getProvisionerState(), { ...settled, revision: 2 });
    await repository.putProvisionerState({ ...empty, revision: 2 });
    assert.deepEqual(await repository.getProvisionerState(), { ...empty, revision: 3 });
  });

  test("of twenty concurrent puts, exactly one succeeds, and its state is the one stored", async ({
    repository,
  }) => {
    const empty = await repository.getProvisionerState();
    const states = Array.from({ length: 20 }, (_, index) => ({
      ...empty,
      appliedHash: String(index),
      applied: buildEntities(50, String(index)),
    }));
    const answers = await Promise.allSettled(
      states.map((state) => repository.putProvisionerState(state)),
    );
    const won = states.filter((_, index) => answers[index]?.status === "fulfilled");
    assert.equal(won.length, 1);
    for (const answer of answers)
      if (answer.status === "rejected" && !(answer.reason instanceof RateLimiterUnavailable))
        assert.ok(answer.reason instanceof ApplyConflictError, String(answer.reason));
    assert.deepEqual(await repository.getProvisionerState(), { ...won[0], revision: 1 });
  });

  test("refuses an invalid provisioner state", async ({ repository }) => {
    const state = await repository.getProvisionerState();
    const members: readonly Readonly<Record<string, unknown>>[] = [
      ...[undefined, -1, 0.5, "0", 0n].map((revision) => ({ revision })),
      ...[undefined, "yes", 1].map((managedSystem) => ({ managedSystem })),
      ...[undefined, "gpt-4", ["a#b"], [5]].map((managedResources) => ({ managedResources })),
      ...[undefined, [], { "a#b": [] }, { "key-1": "gpt-4" }, { "key-1": ["a#b"] }].map(
        (managedEntities) => ({ managedEntities }),
      ),
      ...["today", new Date(Number.NaN), 5].map((lastApplied) => ({ lastApplied })),
      { appliedHash: 5 },
      { appliedHash: "x".repeat(1025) },
      ...["", 5, "x".repeat(1025)].map((owner) => ({ owner })),
      ...[null, [], { ...PENDING, hash: "" }, { ...PENDING, principal: "a b" }].map((pending) => ({
        pending,
      })),
      { pending: { ...PENDING, startedAt: "2026-01-01T00:00:00.000Z" } },
      ...badDeclarations().flatMap((declared) => [
        { applied: declared },
        { pending: { ...PENDING, declared } },
      ]),
    ];
    const bad = [
      undefined,
      null,
      "state",
      {},
      ...members.map((member) => Object.assign({}, state, member)),
    ];
    for (const value of bad)
      await failsWith(
        ValidationError,
        () => repository.putProvisionerState(value as ProvisionerState),
        inspect(value, { depth: 6 }),
      );
    assert.deepEqual(await repository.getProvisionerState(), state);
  });
};

const LEVEL = {
  limits: [
    Limit.perMinute("tpm", 10_000, { burst: 15_000 }),
    Limit.custom({ name: "a.b", capacity: 1, refillAmount: 7, refillPeriodSeconds: 13 }),
  ],
  inherit: true,
};

/** Every field, and names that are members of every object. */
const DECLARED: DeclaredLimits = {
  system: {
    limits: [Limit.perSecond("rps", 5)],
    onUnavailable: "allow",
    auditRetentionDays: 30,
    usageRetentionDays: 3650,
  },
  resources: { "gpt-4": LEVEL, constructor: { ...LEVEL, inherit: false } },
  entities: {
    "7": { resources: { _default_: LEVEL, "eu/gpt-4": LEVEL } },
    acme: {
      name: "Acme – Zürich 😀",
      metadata: JSON.parse('{ "plan": "", "__proto__": "x" }') as Record<string, string>,
      resources: {},
    },
    toString: { parentId: "acme", cascade: false, resources: { toString: LEVEL } },
  },
};

const PENDING: PendingApply = {
  hash: "sha256:2",
  startedAt: new Date("2026-01-01T00:00:00.001Z"),
  principal: "arn:aws:iam::123456789012:role/ci",
  declared: DECLARED,
};

/** Declared limits of many entities, each about 200 bytes. */
function buildEntities(count: number, name: string): DeclaredLimits {
  const entities = entityIds(count).map((id) => [
    id,
    { name, resources: { "gpt-4": { limits: LEVEL.limits, inherit: false } } },
  ]);
  return { resources: {}, entities: Object.fromEntries(entities) as DeclaredLimits["entities"] };
}

function entityIds(count: number): readonly string[] {
  return Array.from({ length: count }, (_, index) => `entity-${index}`);
}

/** Declared limits that are wrong in one place each. */
function badDeclarations(): readonly unknown[] {
  const { resources, entities } = DECLARED;
  const levels = [
    undefined,
    [],
    { limits: [], inherit: false },
    { limits: LEVEL.limits },
    { ...LEVEL, burst: 1 },
    { ...LEVEL, inherit: "yes" },
    { inherit: true, limits: [...LEVEL.limits, ...LEVEL.limits] },
    { inherit: true, limits: [{ ...LEVEL.limits[0], capacity: 0.5 }] },
  ];
  const systems = [
    null,
    [],
    { limits: [] },
    { onUnavailable: "maybe" },
    { auditRetentionDays: 0 },
    { usageRetentionDays: 3651 },
    { retention: 1 },
  ];
  const records = [
    {},
    { resources: [] },
    { resources: { "a#b": LEVEL } },
    { resources: {}, parentId: "a#b" },
    { resources: {}, cascade: "yes" },
    { resources: {}, name: "" },
    { resources: {}, metadata: { plan: 1 } },
    { resources: {}, parent: "acme" },
  ];
  return [
    null,
    "text",
    [],
    {},
    { resources },
    { entities },
    { ...DECLARED, limits: {} },
    { resources: { _default_: LEVEL }, entities },
    { resources: { "a#b": LEVEL }, entities },
    { resources, entities: { "a#b": { resources: {} } } },
    ...systems.map((system) => ({ system, resources, entities })),
    ...levels.flatMap((level) => [
      { resources: { "gpt-4": level }, entities },
      { resources, entities: { e: { resources: { "gpt-4": level } } } },
    ]),
    ...records.map((record) => ({ resources, entities: { e: record } })),
  ];
}
