/*
 * A batch is one write, but must have the effect of its members one after another on the state that
 * the write finds. What the plan sends is carried out here by an interpreter of expressions that
 * knows nothing of buckets, on an item that other processes have moved since the image was taken;
 * the same members are then carried out one by one with the core's arithmetic. A decision by the
 * net amount, which looks right, fails here: see test/mutations/batch-*.json.
 */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { update, type ExpressionInput } from "../../../../test/support/expression-evaluator.ts";
import {
  after,
  afterCounting,
  buildBucket,
  countsIn,
  countEntries,
  buildIntent,
  buildItem,
  buildLimits,
  members,
  NAMES,
  buildRequest,
  situation,
  START_MS,
  type Situation,
  type Wanted,
} from "../../../../test/support/batch-cases.ts";
import { getAmount } from "../../../core/amounts.ts";
import {
  apply,
  balanceMilli,
  bucketLimit,
  bucketLimits,
  getConsumedMilli,
  fullBucket,
  holds,
  type Bucket,
} from "../../../core/bucket/bucket.ts";
import { addLeaves } from "../../../core/bucket/leave.ts";
import { withPolicyLimits } from "../../../core/bucket/decision.ts";
import type { RateLimit } from "../../../core/limit-kinds.ts";
import { Limit } from "../../../core/limit.ts";
import { buildPolicy, type Policy } from "../../../core/bucket/policy.ts";
import type { AttributeMap } from "../transport/attribute-values.ts";
import { decideBatch } from "./batch-decision.ts";
import { buildChangedImage, parseBucketItem } from "../items/bucket-item.ts";
import { roundToTick } from "./tick.ts";
import { planWrite, type Plan } from "./write-plan.ts";

const RUNS = Number(process.env["RUNS"] ?? 1000);
describe("a batch that is one write", { timeout: 60_000 + RUNS * 5 }, () => {
  it("equals its members one after another on the state that the write finds", () => {
    let applied = 0;
    fc.assert(
      fc.property(situation(), (drawn) => {
        const image = buildBucket(drawn);
        const policy = buildPolicy(drawn.limits, "resource");
        const nowMs = START_MS + drawn.elapsedMs;
        if (carryOut({ image, policy, nowMs, drawn }) === "applied") applied += 1;
      }),
      { numRuns: RUNS },
    );
    expect(applied).toBeGreaterThan(RUNS / 2);
  });

  it("gets a reply with all that is needed to know the bucket afterwards", () => {
    let changesOnly = 0;
    fc.assert(
      fc.property(situation(), (drawn) => {
        const image = buildBucket(drawn);
        const policy = buildPolicy(drawn.limits, "resource");
        const nowMs = START_MS + drawn.elapsedMs;
        const intents = drawn.wanted.map((each) => buildIntent(each, policy));
        const { write } = planWrite(
          buildRequest({ policy, image: parseBucketItem(buildItem(image)), intents, nowMs }),
        );
        const found = drawn.meanwhile.reduce((bucket, event) => after(bucket, event, nowMs), image);
        const next =
          write === undefined ? undefined : update(buildItem(found), write.request.input("limits"));
        if (next === undefined || write?.changed === undefined) return;
        changesOnly += 1;
        const changed = changedBy(write.request.input("limits"), next);
        expect(buildChangedImage(write.changed, changed, write.mark)).toEqual(
          parseBucketItem(next),
        );
      }),
      { numRuns: RUNS },
    );
    expect(changesOnly).toBeGreaterThan(RUNS / 10);
  });

  it("equals them too when it brings the bucket under other limits", () => {
    let applied = 0;
    fc.assert(
      fc.property(situation(), buildLimits(NAMES), (drawn, limits) => {
        const image = buildBucket(drawn);
        const nowMs = START_MS + drawn.elapsedMs;
        if (
          carryOut({ image, policy: buildPolicy(limits, "resource"), nowMs, drawn }) === "applied"
        )
          applied += 1;
      }),
      { numRuns: RUNS },
    );
    expect(applied).toBeGreaterThan(RUNS / 4);
  });

  it("equals them too when it creates the bucket", () => {
    fc.assert(
      fc.property(buildLimits(NAMES), members(NAMES), (limits, wanted) => {
        const policy = buildPolicy(limits, "resource");
        const incarnation = {
          creation: "gone",
          expiredBySeconds: START_MS / 1000,
          divisor: 1,
          splitAtMs: undefined,
        };
        const intents = wanted.map((each) => ({
          ...buildIntent(each, policy),
          ...(each.kind === "overrun" && { incarnation }),
        }));
        const plan = planWrite(
          buildRequest({ policy, image: undefined, intents, nowMs: START_MS }),
        );
        const verdicts = wanted.map(({ kind }, index) =>
          kind === "giveBack" ? "gone" : plan.verdicts[index]!,
        );
        expect(plan.verdicts).toEqual(verdicts);
        const expected = oneAfterAnother(
          fullBucket(policy.bucketLimits, START_MS),
          wanted,
          verdicts,
          START_MS,
        );
        if (plan.write === undefined) expect(verdicts).not.toContain("written");
        else {
          expectSame(parseBucketItem(plan.write.item!).bucket, expected, START_MS);
          expect(countsIn(plan.write.item!)).toEqual(countEntries(getWritten(wanted, plan)));
        }
      }),
      { numRuns: RUNS },
    );
  });

  it("decides by the exact time, and is written as of the last tick if it still fits", () => {
    let ticked = 0;
    fc.assert(
      fc.property(situation(), fc.integer({ min: 2, max: 100 }), (drawn, tickMs) => {
        const image = buildBucket(drawn);
        const policy = buildPolicy(drawn.limits, "resource");
        const intents = drawn.wanted.map((each) => buildIntent(each, policy));
        const request = buildRequest({
          policy,
          image: parseBucketItem(buildItem(image)),
          intents,
          nowMs: START_MS + drawn.elapsedMs,
        });
        const { verdicts, write } = planWrite({ ...request, tickMs });
        expect(verdicts).toEqual(planWrite(request).verdicts);
        if (write === undefined) return;
        const tick = roundToTick(request.nowMs, tickMs, image.limits);
        const written = getWritten(drawn.wanted, { verdicts });
        const atMs = decideBatch(image, written, tick).accepted.includes(false)
          ? request.nowMs
          : tick;
        if (atMs < request.nowMs) ticked += 1;
        const next = update(buildItem(image), write.request.input("limits"))!;
        expectSame(
          parseBucketItem(next).bucket,
          oneAfterAnother(image, drawn.wanted, verdicts, atMs),
          request.nowMs,
        );
      }),
      { numRuns: RUNS },
    );
    expect(ticked).toBeGreaterThan(RUNS / 10);
  });

  it("refuses exactly the acquires that do not fit after those before them", () => {
    fc.assert(
      fc.property(situation(), (drawn) => {
        const bucket = buildBucket(drawn);
        const nowMs = START_MS + drawn.elapsedMs;
        let running = bucket;
        const expected = drawn.wanted.map(({ kind, costs, leaves = {} }) => {
          const costsMilli = running.limits.map(({ limit }) => getAmount(costs, limit.name));
          const needs = addLeaves(running, costsMilli, leaves);
          const fits = kind !== "take" || holds(running, needs, nowMs);
          if (fits) running = apply(running, costsMilli, nowMs);
          return fits;
        });
        expect(decideBatch(bucket, drawn.wanted, nowMs).accepted).toEqual(expected);
      }),
      { numRuns: RUNS },
    );
  });

  it("is the same as one that states what limits count", () => {
    fc.assert(
      fc.property(situation(), (drawn) => {
        const [rpm, tpm] = drawn.limits;
        fc.pre(tpm !== undefined);
        const image = parseBucketItem(buildItem(buildBucket(drawn)));
        const plan = (limits: readonly RateLimit[], wanted: readonly Wanted[]): unknown => {
          const policy = buildPolicy(limits, "resource");
          const intents = wanted.map((each) => buildIntent(each, policy));
          const nowMs = START_MS + drawn.elapsedMs;
          const { verdicts, write } = planWrite(buildRequest({ policy, image, intents, nowMs }));
          return [verdicts, write?.request.input("limits")];
        };
        const stated = drawn.wanted.map((each) =>
          each.kind === "take" || each.kind === "charge"
            ? { ...each, costs: stateBoth(each.costs), leaves: stateBoth(each.leaves ?? {}) }
            : each,
        );
        const counting = { ...tpm, counts: "rpm" };
        expect(plan([rpm!, counting], drawn.wanted)).toEqual(plan([rpm!, tpm], stated));
      }),
      { numRuns: RUNS },
    );
  });

  it("stops before a sum that a number cannot hold exactly, and makes progress", () => {
    const bucket = fullBucket(
      bucketLimits([{ name: "tpm", capacity: 1, refillAmount: 1, refillPeriodSeconds: 1 }]),
      START_MS,
    );
    const costs = { tpm: Number.MAX_SAFE_INTEGER };
    const huge = { kind: "overrun", costs, isCascaded: false } as const;
    expect(decideBatch(bucket, [huge, huge], START_MS).accepted).toEqual([true]);
    expect(decideBatch(bucket, [{ ...huge, kind: "take" }, huge], START_MS).accepted).toEqual([
      false,
      true,
    ]);
  });
});

/** DynamoDB refuses longer expressions. */
const LONGEST_EXPRESSION = 4096;
/** See core/limit.ts. */
const MAX_LIMITS = 32;

describe("the expressions of a batch", () => {
  const [before, other, raised] = [many("a", 1000), many("b", 2000), many("a", 3000)];

  it.each([
    { does: "takes from as many limits as there may be", held: before, wanted: before },
    { does: "changes all of them", held: before, wanted: raised },
    { does: "replaces all of them", held: before, wanted: other },
    {
      does: "replaces all of them for the second time",
      held: before,
      wanted: other,
      hidden: many("c", 5000),
    },
  ])("fit when it $does", ({ held, wanted, hidden = [] }) => {
    const limits = [...bucketLimits(held), ...hidden.map((limit) => bucketLimit(limit, true))];
    const image = parseBucketItem(
      buildItem({
        limits,
        refilledAtMs: START_MS,
        balances: limits.flatMap((_, index) => [500_000 + index, 1 + index, 0]),
      }),
    );
    const policy = buildPolicy(wanted, "resource");
    const costs = Object.fromEntries(wanted.map(({ name }, index) => [name, 10 + index]));
    const member = { kind: "take", costs, isCascaded: true } as const;
    const intents = Array.from({ length: 256 }, () => buildIntent(member, policy));
    for (const elapsedMs of [0, 7, 1_000_000, 100_000_000]) {
      const { write } = planWrite(
        buildRequest({ policy, image, intents, nowMs: START_MS + elapsedMs }),
      );
      const { UpdateExpression, ConditionExpression } = write!.request.input(
        "limits",
      ) as ExpressionInput;
      expect(UpdateExpression!.length).toBeLessThanOrEqual(LONGEST_EXPRESSION);
      expect(ConditionExpression!.length).toBeLessThanOrEqual(LONGEST_EXPRESSION);
    }
  });
});

describe("the statement of a batch", () => {
  it.each([
    ["exists for ordinary names", "in-put", true],
    ["does not exist where a name has a dot, which dynoxide takes for a path", "in.put", false],
  ])("%s", (_, name, isStatement) => {
    const policy = buildPolicy([Limit.perMinute(name, 10)], "resource");
    const image = parseBucketItem(buildItem(fullBucket(policy.bucketLimits, START_MS)));
    const member = { kind: "take", costs: { [name]: 1 }, isCascaded: false } as const;
    const intents = [buildIntent(member, policy)];
    const { write } = planWrite(buildRequest({ policy, image, intents, nowMs: START_MS }));
    expect(write!.request.statement("limits") !== undefined).toBe(isStatement);
  });
});

/** Plans on the image, carries the write out on what others have made of it, and compares. */
function carryOut(options: {
  readonly image: Bucket;
  readonly policy: Policy;
  readonly nowMs: number;
  readonly drawn: Situation;
}): "nothing to write" | "condition failed" | "applied" {
  const { image, policy, nowMs, drawn } = options;
  const intents = drawn.wanted.map((each) => buildIntent(each, policy));
  const plan = planWrite(
    buildRequest({ policy, image: parseBucketItem(buildItem(image)), intents, nowMs }),
  );
  if (plan.write === undefined) return "nothing to write";
  const input = plan.write.request.input("limits") as ExpressionInput;
  // Alone, a write that was decided from what is stored must be applied: otherwise it would be
  // decided the same again, forever.
  expect(
    update(buildItem(image), input),
    "refused by the state that it was decided with",
  ).toBeDefined();
  const found = drawn.meanwhile.reduce((bucket, event) => after(bucket, event, nowMs), image);
  const next = update(buildItem(found), input);
  if (next === undefined) return "condition failed";
  const rewrites = drawn.wanted.some(({ kind }) => kind === "take" || kind === "charge");
  const start = rewrites ? withPolicyLimits(found, policy, nowMs) : found;
  expectSame(
    parseBucketItem(next).bucket,
    oneAfterAnother(start, drawn.wanted, plan.verdicts, nowMs),
    nowMs,
  );
  expect(countsIn(next)).toEqual(countEntries(getWritten(drawn.wanted, plan)));
  return "applied";
}

/** What a reply shows when only the updated attributes are requested. */
function changedBy(
  { UpdateExpression = "", ExpressionAttributeNames = {} }: ExpressionInput,
  next: AttributeMap,
): AttributeMap {
  const aliases = new Set(UpdateExpression.match(/#n\w+/g));
  return Object.fromEntries(
    Object.entries(ExpressionAttributeNames).flatMap(([alias, name]) =>
      aliases.has(alias) && name in next ? [[name, next[name]!]] : [],
    ),
  );
}

/**
 * The members that were written, by the core's arithmetic; each acquire must fit where it stands.
 */
function oneAfterAnother(
  start: Bucket,
  wanted: readonly Wanted[],
  verdicts: Plan["verdicts"],
  nowMs: number,
): Bucket {
  return wanted.reduce((bucket, member, index) => {
    if (verdicts[index] !== "written") return bucket;
    const { kind, costs, leaves = {} } = member;
    const costsMilli = bucket.limits.map(({ limit, hidden }) =>
      (kind === "take" || kind === "charge") && hidden ? 0 : getAmount(costs, limit.name),
    );
    if (kind === "take")
      expect(
        holds(bucket, addLeaves(bucket, costsMilli, leaves), nowMs),
        `member ${index} was granted what was not there`,
      ).toBe(true);
    return afterCounting(apply(bucket, costsMilli, nowMs), member);
  }, start);
}

/** Amounts in which `tpm` is what `rpm` is, unless it is there. */
function stateBoth({ rpm, ...rest }: Wanted["costs"]): Wanted["costs"] {
  return rpm === undefined ? rest : { rpm, tpm: rpm, ...rest };
}

/** Nothing minted and nothing lost, now and at times at which fractions have grown to tokens. */
function expectSame(written: Bucket, expected: Bucket, nowMs: number): void {
  for (const atMs of [nowMs, nowMs + 1, nowMs + 7, nowMs + 1001, nowMs + 100_000])
    expect(show(written, atMs)).toEqual(show(expected, atMs));
}

function show(bucket: Bucket, atMs: number): unknown {
  return Object.fromEntries(
    bucket.limits.map(({ limit, hidden }, index) => [
      limit.name,
      {
        hidden,
        balance: balanceMilli(bucket, index, atMs),
        consumed: getConsumedMilli(bucket, index),
      },
    ]),
  );
}

function many(prefix: string, capacity: number): readonly RateLimit[] {
  return Array.from({ length: MAX_LIMITS }, (_, index) =>
    Limit.custom({
      name: `${prefix}${index}`,
      capacity: capacity + index,
      refillAmount: 2 * capacity + index,
      refillPeriodSeconds: 60 + index,
    }),
  );
}

function getWritten(wanted: readonly Wanted[], { verdicts }: Pick<Plan, "verdicts">): Wanted[] {
  return wanted.filter((_, index) => verdicts[index] === "written");
}
