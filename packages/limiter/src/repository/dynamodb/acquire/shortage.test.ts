import * as fc from "fast-check";
import { UndecidedCalls } from "../cache/undecided-calls.ts";
import { describe, expect, it } from "vitest";
import { scriptedProcess } from "../../../../test/support/scripted-table.ts";
import { NOW_MS, shardImage, shardKey, TPM } from "../../../../test/support/shard-images.ts";
import { Limit } from "../../../core/limit.ts";
import { buildPolicy } from "../../../core/bucket/policy.ts";
import { PolicyCache } from "../../policy-cache.ts";
import type { ConsumeOutcome, ConsumeRequest, MaybePromise } from "../../port.ts";
import { Expiring } from "../cache/expiring.ts";
import { PolicyResolver } from "../cache/policy-resolver.ts";
import { mayFit } from "./fit.ts";
import { ClaimPreparation, type KnownEntity } from "./prepare.ts";
import { Refusals } from "./refusal.ts";

const MEMORY_MS = 1000;
const TTL_MS = 1500;
const RPM = Limit.perMinute("rpm", 60);
const RAISED = Limit.perMinute("tpm", 120);
const OVERRIDE = buildPolicy([TPM], "override");

/** Most calls are usual ones, and each of the others differs in one way. */
const someCase = fc.record({
  tokens: fc.record({ tpm: fc.integer({ min: -9000, max: 9000 }), rpm: fc.nat(60_000) }),
  amounts: fc.record({ tpm: fc.nat(12), rpm: fc.nat(61), odd: fc.nat(1) }, { requiredKeys: [] }),
  ageMs: fc.oneof(fc.nat(2000), fc.constantFrom(-1, -0.5, 0, 0.5, 999.5)),
  unusual: fc.constantFrom(
    "nothing",
    "nothing",
    "nothing",
    "other limits",
    "a parent",
    "an override",
    "two resources",
    "a shard of two",
    "no bucket",
    "a deleted namespace",
  ),
});

type Case = typeof someCase extends fc.Arbitrary<infer T> ? T : never;

describe("a call that its only bucket is known to be short of", () => {
  it("is refused at once as the long way refuses it, and no other call is", async () => {
    await fc.assert(
      fc.asyncProperty(someCase, async (drawn) => {
        const { preparation, refusals, counts, request, nowMs } = await startProcess(drawn);
        const shortage = preparation.shortage(request, nowMs);
        const long = await theLongWay(drawn);
        const isUsual = drawn.unusual === "nothing" && drawn.amounts.odd === undefined;
        if (isUsual) expect(shortage !== undefined).toBe(long !== undefined);
        if (shortage === undefined) return;
        const outcome = refusals.fromMemory(shortage, nowMs);
        expect(counts.refusalsFromMemory).toBe(1);
        expect([long?.outcome.granted, long?.refusalsFromMemory]).toEqual([false, 1]);
        if (!outcome.granted && long?.outcome.granted === false)
          expect(outcome.statuses).toEqual(long.outcome.statuses);
      }),
      { numRuns: 300 },
    );
  });

  it("counts one use of the policies, and none when the bucket holds the call", async () => {
    const usual = { ageMs: 0, tokens: { tpm: 5000, rpm: 0 }, unusual: "nothing" };
    const short = await startProcess({ ...usual, amounts: { tpm: 6 } } as Case);
    const before = short.policies.stats().hits;
    expect(short.preparation.shortage(short.request, short.nowMs)).toBeDefined();
    expect(short.policies.stats().hits).toBe(before + 1);
    const enough = { ...short.request, resources: [{ resource: "r", amounts: { tpm: 5 } }] };
    expect(short.preparation.shortage(enough, short.nowMs)).toBeUndefined();
    expect(short.policies.stats().hits).toBe(before + 1);
  });
});

/** What the phases of an acquire refuse without a request, of the same bucket. */
async function theLongWay(
  drawn: Case,
): Promise<{ readonly outcome: ConsumeOutcome; readonly refusalsFromMemory: number } | undefined> {
  const { preparation, refusals, known, counts, request, nowMs } = await startProcess(drawn);
  const begun = known.stampRequest().order;
  let claims: ReturnType<typeof preparation.prepare>;
  try {
    claims = preparation.prepare(request);
  } catch {
    return undefined;
  }
  if (claims instanceof Promise) return void claims.catch(() => {});
  const call = { claims, begun };
  const atMs = Math.floor(nowMs);
  if (claims.every((claim) => mayFit(claim, known.get(claim.key), atMs))) return undefined;
  if (!refusals.mayRefuse(call)) return undefined;
  const outcome: MaybePromise<ConsumeOutcome> | undefined = refusals.refuse(call, atMs, atMs);
  if (outcome === undefined || outcome instanceof Promise) return undefined;
  return { outcome, refusalsFromMemory: counts.refusalsFromMemory };
}

/** A process that has met the entity and read its limits, and has seen the bucket once. */
async function startProcess({ tokens, amounts, ageMs, unusual }: Case) {
  const { clock, known, writer } = scriptedProcess();
  const active = new Expiring<string>({ read: async (id) => id, clock, ttlMs: TTL_MS });
  const parentId = unusual === "a parent" ? "p" : undefined;
  const entities = new Expiring<KnownEntity>({
    read: async () => ({ parentId, buckets: new Map() }),
    clock,
    ttlMs: TTL_MS,
  });
  const limits = [TPM, RPM];
  const policies = new PolicyCache({
    read: (keys) => keys.map(({ level }) => ({ limits: level === "system" ? limits : undefined })),
    clock,
    ttlMs: TTL_MS,
  });
  const resolver = new PolicyResolver(policies, known, () => false);
  const options = { namespaceId: "ns", policies, resolver, known, entities, active, clock, writer };
  const counts = { refusalsFromMemory: 0 };
  const shared = {
    ...options,
    counts,
    undecided: new UndecidedCalls(),
    refusalMemoryMs: MEMORY_MS,
  };
  const preparation = new ClaimPreparation(shared);
  const resources = [{ resource: "r", amounts }];
  if (unusual === "two resources") resources.push({ resource: "s", amounts });
  const override = unusual === "an override" ? OVERRIDE : undefined;
  const request: ConsumeRequest = { entityId: "e", resources, override };
  await Promise.all([active.get("ns"), entities.get("e"), entities.get("p")]);
  for (const entityId of ["e", "p"])
    for (const resource of ["r", "s"]) {
      preparation.findKey(entityId, resource);
      await policies.resolve(entityId, resource);
    }
  if (unusual !== "no bucket") {
    const stored = unusual === "other limits" ? [RAISED, RPM] : limits;
    const divisor = unusual === "a shard of two" ? 2 : 1;
    const image = shardImage({ tokens, divisor, limits: stored });
    known.remember(shardKey(), image, known.stampRequest());
  }
  if (unusual === "a deleted namespace") active.forget("ns");
  const nowMs = NOW_MS + ageMs;
  clock.set(nowMs);
  return { preparation, refusals: new Refusals(shared), known, policies, counts, request, nowMs };
}
