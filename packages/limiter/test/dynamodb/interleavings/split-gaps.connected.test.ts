import { beforeAll, expect, it } from "vitest";
import type { DynamoTransport } from "../../../src/repository/dynamodb/transport/transport.ts";
import { connectToNewTable } from "../../support/connect.ts";
import { describeWithEngine } from "../../support/engine.ts";
import { newCoverage } from "./coverage.ts";
import { SPLITTER_FATES, tellWithSplit, type GapSplit } from "./split-gaps.ts";

const NOWHERE = Infinity;

/**
 * Every gap in a thorough run; otherwise every gap of the plain story, and a third of the
 * others, not the same ones.
 */
const STRIDE = process.env["ZAEL_THOROUGH"] === "1" ? 1 : 3;

describeWithEngine("a split in every gap of a story", (engine) => {
  let transport: DynamoTransport;
  let tableName: string;

  beforeAll(async () => {
    ({ transport, tableName } = await connectToNewTable(engine().endpointUrl, {
      transport: "lean",
    }));
  });

  async function everyGap(kind: Pick<GapSplit, "fate" | "ofParent" | "losesReply">): Promise<void> {
    const coverage = newCoverage();
    const told = (gap: number): Promise<number> => {
      const split: GapSplit = {
        gap,
        ...kind,
        shards: gap % 2 === 0 ? 2 : 4,
        skewMs: [0, 700, -700][gap % 3]!,
      };
      return tellWithSplit({ transport, tableName }, split, coverage);
    };
    const gaps = await told(NOWHERE);
    const isPlain = kind.fate === "lives" && !kind.ofParent;
    const stride = isPlain ? 1 : STRIDE;
    for (let gap = SPLITTER_FATES.indexOf(kind.fate) % stride; gap < gaps; gap += stride)
      await told(gap);
    expect(coverage.counts.get("split")).toBeGreaterThan(
      kind.fate === "dies before" ? 0 : gaps / (2 * stride),
    );
    expect(coverage.counts.get("call that gathered from several shards")).toBeGreaterThan(0);
  }

  for (const fate of SPLITTER_FATES)
    it(`a split changes nothing when whoever splits ${fate}`, { timeout: 300_000 }, () =>
      everyGap({ fate, ofParent: false, losesReply: false }),
    );

  it(
    "a split changes nothing when the reply to the write before it gets lost",
    { timeout: 300_000 },
    () => everyGap({ fate: "lives", ofParent: false, losesReply: true }),
  );

  for (const fate of ["lives", "dies after"] as const)
    it(
      `a split changes nothing for the children when whoever splits their parent ${fate}`,
      { timeout: 300_000 },
      () => everyGap({ fate, ofParent: true, losesReply: false }),
    );
});
