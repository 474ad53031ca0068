import { beforeAll, expect, it } from "vitest";
import type { DynamoTransport } from "../../../src/repository/dynamodb/transport/transport.ts";
import { connectToNewTable } from "../../support/connect.ts";
import { describeWithEngine } from "../../support/engine.ts";
import { getEach, seedsFromEnvironment } from "../../support/seeded/seeds.ts";
import { newCoverage } from "./coverage.ts";
import { FATES, RESHAPES, tellWith, type GapReshape } from "./reshape-gaps.ts";

const NOWHERE = Infinity;

/**
 * Every so many gaps; the seed says which is the first, so that so many seeds try every gap.
 * Strides are odd: requests and replies take turns.
 */
const STRIDES = { split: 11, merge: 9, "merge and split": 13 } as const;

const SEEDS = seedsFromEnvironment({ usual: 1 });

describeWithEngine("a split or a merge in every gap of a story", (engine) => {
  let transport: DynamoTransport;
  let tableName: string;

  beforeAll(async () => {
    ({ transport, tableName } = await connectToNewTable(engine().endpointUrl, {
      transport: "lean",
    }));
  });

  async function manyGaps(
    story: Pick<GapReshape, "kind" | "fate" | "ofParent" | "losesReply">,
  ): Promise<void> {
    const coverage = newCoverage();
    const told = (gap: number): Promise<number> => {
      const reshape: GapReshape = {
        gap,
        ...story,
        shards: gap % 2 === 0 ? 2 : 4,
        skewMs: [0, 700, -700][gap % 3]!,
      };
      return tellWith({ transport, tableName }, reshape, coverage);
    };
    const gaps = await told(NOWHERE);
    const { kind, fate } = story;
    const stride = STRIDES[kind];
    for (const seed of getEach(SEEDS)) {
      const first = (FATES.indexOf(fate) + seed - 1) % stride;
      for (let gap = first; gap < gaps; gap += stride) await told(gap);
    }
    const isDone = fate !== "dies before" && fate !== "is late";
    for (const each of ["split", "merge"] as const)
      if (kind.includes(each))
        expect(coverage.counts.get(each)).toBeGreaterThan(isDone ? gaps / (3 * stride) : 0);
    expect(coverage.counts.get("call that gathered from several shards")).toBeGreaterThan(0);
  }

  for (const kind of RESHAPES) {
    for (const fate of FATES)
      it(`a ${kind} changes nothing when its process ${fate}`, { timeout: 900_000 }, () =>
        manyGaps({ kind, fate, ofParent: false, losesReply: false }),
      );

    // What became of a write to a shard that was split off anew since is unknown.
    if (kind !== "merge and split")
      it(
        `a ${kind} changes nothing when the reply to the write before it gets lost`,
        { timeout: 900_000 },
        () => manyGaps({ kind, fate: "lives", ofParent: false, losesReply: true }),
      );

    for (const fate of ["lives", "dies after"] as const)
      it(
        `a ${kind} of their parent changes nothing for the children when its process ${fate}`,
        { timeout: 900_000 },
        () => manyGaps({ kind, fate, ofParent: true, losesReply: false }),
      );
  }
});
