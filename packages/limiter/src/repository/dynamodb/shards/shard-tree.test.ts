import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { distribute, nextHalf, findOwner, ownersOfClass, type ShardClass } from "./shard-tree.ts";

const LARGEST = 32;

/** Trees that any sequence of splits can make. */
const tree = fc.array(fc.nat(), { maxLength: 60 }).map((choices) => {
  let shards: readonly ShardClass[] = [{ shard: 0, divisor: 1 }];
  for (const choice of choices) shards = split(shards, shards[choice % shards.length]!.shard);
  return shards;
});

function split(shards: readonly ShardClass[], shard: number): readonly ShardClass[] {
  const own = shards.find((other) => other.shard === shard)!;
  if (own.divisor >= LARGEST) return shards;
  return [
    ...shards.filter((other) => other !== own),
    { shard, divisor: own.divisor * 2 },
    nextHalf(own),
  ];
}

describe("the tree of shards", () => {
  it("a shard splits into itself and the class as far away as its divisor", () => {
    expect(nextHalf({ shard: 0, divisor: 1 })).toEqual({ shard: 1, divisor: 2 });
    expect(nextHalf({ shard: 1, divisor: 2 })).toEqual({ shard: 3, divisor: 4 });
    expect(nextHalf({ shard: 1, divisor: 8 })).toEqual({ shard: 9, divisor: 16 });
  });

  it("every number has exactly one owner, which findOwner returns", () => {
    fc.assert(
      fc.property(tree, fc.nat({ max: LARGEST - 1 }), (shards, number) => {
        const owners = shards.filter(({ shard, divisor }) => number % divisor === shard);
        expect(owners).toHaveLength(1);
        const known = new Set(shards.map(({ shard }) => shard));
        expect(findOwner(number, LARGEST, (shard) => known.has(shard))).toBe(owners[0]!.shard);
      }),
    );
  });

  it("a shard that is wanted exists after its owner was split often enough", () => {
    // Count 8, shard 1 still at divisor 2: a process that wants 5 splits 1 into 1 and 3 first, and
    // never into 1 and 5.
    let shards: readonly ShardClass[] = [
      { shard: 0, divisor: 8 },
      { shard: 4, divisor: 8 },
      { shard: 2, divisor: 4 },
      { shard: 1, divisor: 2 },
    ];
    const made: number[] = [];
    for (let guard = 0; guard < 8 && !shards.some(({ shard }) => shard === 5); guard += 1) {
      const known = shards;
      const owner = findOwner(5, 8, (shard) => known.some((other) => other.shard === shard))!;
      made.push(nextHalf(shards.find(({ shard }) => shard === owner)!).shard);
      shards = split(shards, owner);
    }
    expect(made).toEqual([3, 5]);
    expect(shards.reduce((sum, { divisor }) => sum + 1 / divisor, 0)).toBe(1);
  });

  it("knows no owner when not even shard 0 exists", () => {
    expect(findOwner(5, 8, () => false)).toBeUndefined();
  });
});

describe("what is given back to a class", () => {
  it("goes to the shard itself while it has not split", () => {
    const taken = { shard: 1, divisor: 2 };
    const owners = ownersOfClass(taken, [{ shard: 0, divisor: 2 }, taken]);
    expect(owners).toEqual([taken]);
    expect(distribute({ tpm: 7 }, taken, owners)).toEqual([{ shard: 1, amounts: { tpm: 7 } }]);
  });

  it("goes to the shards that it was split into, by share, with the rest to the first", () => {
    const existing = [
      { shard: 0, divisor: 4 },
      { shard: 1, divisor: 2 },
      { shard: 2, divisor: 8 },
      { shard: 6, divisor: 8 },
    ];
    const owners = ownersOfClass({ shard: 0, divisor: 1 }, existing);
    expect(distribute({ tpm: -1007, rpm: -1 }, { shard: 0, divisor: 1 }, owners)).toEqual([
      { shard: 0, amounts: { tpm: -1007 + 503 + 125 + 125, rpm: -1 } },
      { shard: 1, amounts: { tpm: -503 } },
      { shard: 2, amounts: { tpm: -125 } },
      { shard: 6, amounts: { tpm: -125 } },
    ]);
    expect(ownersOfClass({ shard: 0, divisor: 2 }, existing).map(({ shard }) => shard)).toEqual([
      0, 2, 6,
    ]);
  });

  it("goes to the shard that a merged class has become part of", () => {
    const whole = [{ shard: 0, divisor: 1 }];
    expect(
      distribute(
        { tpm: -9 },
        { shard: 3, divisor: 4 },
        ownersOfClass({ shard: 3, divisor: 4 }, whole),
      ),
    ).toEqual([{ shard: 0, amounts: { tpm: -9 } }]);
  });

  it("adds up exactly over every tree, with no owner above its share", () => {
    const amount = fc.integer({ min: -1_000_000, max: 1_000_000 });
    fc.assert(
      fc.property(tree, fc.nat(), amount, (shards, choice, tpm) => {
        const divisor = 2 ** (choice % 6);
        const taken = { shard: choice % divisor, divisor };
        const owners = ownersOfClass(taken, shards);
        const covered = owners.reduce(
          (sum, owner) => sum + 1 / Math.max(divisor, owner.divisor),
          0,
        );
        expect(covered).toBe(1 / divisor);
        const parts = distribute({ tpm }, taken, owners);
        expect(parts.reduce((sum, { amounts }) => sum + (amounts["tpm"] ?? 0), 0)).toBe(tpm);
        for (const { shard, amounts } of parts.slice(1)) {
          const share =
            divisor / Math.max(divisor, owners.find((owner) => owner.shard === shard)!.divisor);
          expect(Math.abs(amounts["tpm"]!)).toBeLessThanOrEqual(Math.abs(tpm) * share);
        }
      }),
    );
  });
});
