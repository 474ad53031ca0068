import { Limit } from "zae-limiter";
import { describe, expect, it } from "vitest";
import { buildPolicy } from "./policy.ts";
import { allocateSettlement, computeTakenStatuses, type TakenPart } from "./settlement.ts";

const both = buildPolicy([Limit.perMinute("rpm", 10), Limit.perMinute("tpm", 100)], "system");
const rpmOnly = buildPolicy([Limit.perMinute("rpm", 10)], "system");

function part(
  entityId: string,
  amounts: Readonly<Record<string, number>>,
  policy = both,
): TakenPart {
  return { entityId, resource: "r", policy, amounts };
}

function shares(
  parts: readonly TakenPart[],
  deltas: Readonly<Record<string, number>>,
): readonly (readonly [string, unknown])[] {
  return allocateSettlement(parts, "r", deltas).map(({ part: { entityId }, amounts }) => [
    entityId,
    amounts,
  ]);
}

function readCounted(
  parts: readonly TakenPart[],
  deltas: Readonly<Record<string, number>>,
  parentKnows?: () => boolean,
): unknown {
  return allocateSettlement(parts, "r", deltas, parentKnows).map(
    ({ part: { entityId }, ...share }) => [entityId, share],
  );
}

it("leaves out a bucket that has none of the limits", () => {
  expect(shares([part("e", { rpm: 1 }), part("p", { rpm: 1 }, rpmOnly)], { tpm: 5 })).toEqual([
    ["e", { tpm: 5 }],
  ]);
});

it("gives back the last take first, and never more to a parent than was taken from it", () => {
  const parts = [
    part("e", { tpm: 8 }),
    part("old", { tpm: 8 }),
    part("e", { tpm: 2 }),
    part("new", { tpm: 2 }),
  ];
  expect(shares(parts, { tpm: -5 })).toEqual([
    ["e", { tpm: -2 }],
    ["e", { tpm: -3 }],
    ["new", { tpm: -2 }],
    ["old", { tpm: -3 }],
  ]);
});

describe("a name that the policy lacks", () => {
  it("is only counted where it was, and never beyond what was", () => {
    const parts = [
      { ...part("e", { rpm: 1 }, rpmOnly), unlimited: { tpm: 8 } },
      part("e", { tpm: 5 }),
    ];
    expect(readCounted(parts, { tpm: -10 })).toEqual([
      ["e", { amounts: { tpm: -5 }, unlimited: {} }],
      ["e", { amounts: {}, unlimited: { tpm: -5 } }],
    ]);
    expect(readCounted(parts, { tpm: 3 })).toEqual([["e", { amounts: { tpm: 3 }, unlimited: {} }]]);
    expect(readCounted(parts.toReversed(), { tpm: 3 })).toEqual([
      ["e", { amounts: {}, unlimited: { tpm: 3 } }],
    ]);
  });

  it("is counted by the last bucket when no take has named it, and by a parent that knows it", () => {
    const parts = [
      part("e", { rpm: 1 }, rpmOnly),
      part("p", { rpm: 1 }, rpmOnly),
      part("e", { rpm: 2 }, rpmOnly),
    ];
    const own = ["e", { amounts: {}, unlimited: { tpm: 4 } }];
    expect(readCounted(parts, { tpm: 4 })).toEqual([own]);
    expect(readCounted(parts, { tpm: 4 }, () => true)).toEqual([own, ["p", own[1]]]);
  });
});

it("charges more to the parent that was taken from last", () => {
  const parts = [
    part("e", { tpm: 8 }),
    part("old", { tpm: 8 }),
    part("e", { tpm: 2 }),
    part("new", { tpm: 2 }),
  ];
  expect(shares(parts, { tpm: 5 })).toEqual([
    ["e", { tpm: 5 }],
    ["new", { tpm: 5 }],
  ]);
});

it("gives back to a parent only what it was charged before its limit was removed", () => {
  const parts = [
    part("e", { tpm: 8 }),
    part("p", { tpm: 8 }),
    part("e", { tpm: 2 }),
    part("p", {}, rpmOnly),
  ];
  expect(shares(parts, { tpm: -9 })).toEqual([
    ["e", { tpm: -2 }],
    ["e", { tpm: -7 }],
    ["p", { tpm: -8 }],
  ]);
});

it("gives back to a former parent no more than was taken from it", () => {
  expect(
    shares([part("e", { tpm: 2 }), part("p", { tpm: 2 }), part("e", { tpm: 5 })], { tpm: -7 }),
  ).toEqual([
    ["e", { tpm: -5 }],
    ["e", { tpm: -2 }],
    ["p", { tpm: -2 }],
  ]);
});

it("shows each bucket once, for each resource the entity's before its parents', under the last limits", () => {
  const raised = buildPolicy([Limit.perMinute("rpm", 20)], "resource");
  const parts = [
    part("e", { rpm: 1 }),
    part("p", { rpm: 1 }, rpmOnly),
    { ...part("e", { rpm: 1 }, rpmOnly), resource: "s" },
    part("e", { rpm: 1 }, raised),
    part("q", { rpm: 1 }, rpmOnly),
  ];
  const statuses = computeTakenStatuses(parts, () => undefined, 0);
  expect(
    statuses.map((status) => [status.entityId, status.resource, status.available, status.source]),
  ).toEqual([
    ["e", "r", 20, "resource"],
    ["p", "r", 10, "system"],
    ["q", "r", 10, "system"],
    ["e", "s", 10, "system"],
  ]);
});
