import { describe, expect, it } from "vitest";
import {
  NOW_MS,
  shardImage,
  shardKey,
  TPM,
  type StoredShard,
} from "../../../../test/support/shard-images.ts";
import { bucketLimit, bucketLimits } from "../../../core/bucket/bucket.ts";
import { Limit } from "../../../core/limit.ts";
import type { BucketImage } from "../items/bucket-item.ts";
import { getNumber, getString, type AttributeValue } from "../transport/attribute-values.ts";
import { ItemUpdate } from "../table/update-expression.ts";
import { LimitFold } from "./batch-decision.ts";
import { buildUpdate, type BucketChange, type BucketUpdate } from "./bucket-update.ts";

const RPM = Limit.perMinute("rpm", 5);
const AFTER_1_S = NOW_MS + 1000;
const SAME_VERSION = ["sv=5", "cr=other.0000"];

describe("a take", () => {
  it("requires what it needs, and room for what was earned but is not credited yet", () =>
    expect(readable({ tokens: { tpm: 50_000 } }, { folds: takes(1000) })).toEqual({
      requires: [...SAME_VERSION, `rf>=${NOW_MS}`, "b_tpm_tk>=1000", "b_tpm_tk<=59000"],
      does: "ADD b_tpm_tk -1000,b_tpm_tc 1000,b_wcu_tc 1,gr 1",
    }));

  it("of nothing requires that there is no debt", () =>
    expect(readable({ tokens: { tpm: 50_000 } }, { folds: takes(0) })).toEqual({
      requires: [...SAME_VERSION, `rf>=${NOW_MS}`, "b_tpm_tk>=0"],
      does: "ADD b_wcu_tc 1,gr 1",
    }));

  it("that may go into debt requires no balance, but that its debt is earned back in time", () => {
    const overrun = { folds: settles(8000), requests: 0 };
    const room = "b_tpm_tk<=59000";
    const tokens = { tpm: 5000 };
    expect(readable({ tokens }, overrun).requires).toEqual([
      ...SAME_VERSION,
      `rf>=${NOW_MS}`,
      room,
    ]);
    expect(readable({ tokens }, { ...overrun, ttlMultiplier: 7 })).toEqual({
      requires: [...SAME_VERSION, `rf>=${NOW_MS}`, `b_tpm_tk>=${60_001 - 423_000 + 8000}`, room],
      does: `SET ttl=${AFTER_1_S / 1000 + 423} ADD b_tpm_tk -8000,b_tpm_tc 8000,b_wcu_tc 1`,
    });
  });
});

describe("a refill and a take", () => {
  it("requires the stamp as seen, and the balance within the bounds that credit and cost leave", () =>
    expect(readable({ tokens: { tpm: 500 } }, { folds: takes(1200) })).toEqual({
      requires: [...SAME_VERSION, `rf=${NOW_MS}`, "b_tpm_tk>=200", "b_tpm_tk<=59000"],
      does: `SET rf=${AFTER_1_S} ADD b_tpm_tk -200,b_tpm_tc 1200,b_wcu_tc 1,gr 1`,
    }));

  it("requires the balance as seen when a give-back is cut off before something is charged", () =>
    expect(readable({ tokens: { tpm: 58_500 } }, { folds: settles(-2000, 1000) })).toEqual({
      requires: [...SAME_VERSION, `rf=${NOW_MS}`, "b_tpm_tk=58500"],
      does: `SET rf=${AFTER_1_S},b_tpm_tk=59000 ADD b_tpm_tc -1000,b_wcu_tc 1,gr 1`,
    }));
});

describe("a give-back", () => {
  it("requires nothing of the balance and of the stamp", () =>
    expect(readable({}, { folds: settles(-2000), requests: -1, writeUnits: 3 })).toEqual({
      requires: SAME_VERSION,
      does: "ADD b_tpm_tk 2000,b_tpm_tc -2000,b_wcu_tc 3,gr -1",
    }));
});

describe("a change of limits", () => {
  const raised = bucketLimits([Limit.perMinute("tpm", 120)]);
  const stored = { tokens: { tpm: 500 } };

  it("is a refill that writes the parameters that change, and a newer version", () => {
    const { requires, does } = readable(stored, { folds: takes(1200), limits: raised });
    expect(requires).toContain(`rf=${NOW_MS}`);
    expect(does).toContain(
      `SET rf=${AFTER_1_S},b_tpm_cp=120000,b_tpm_ra=120000,sv=${AFTER_1_S} ADD b_tpm_tk -200,`,
    );
    const ahead = readable({ version: AFTER_1_S + 5 }, { folds: takes(1), limits: raised });
    expect(ahead.does).toContain(`sv=${AFTER_1_S + 6}`);
  });

  it("notes limits of an override, and removes the note when they are replaced", () => {
    const overridden = readable(stored, { folds: takes(1), limits: raised, overridden: true });
    expect(overridden.does).toContain(",po=1 ");
    const replaced = readable({ ...stored, overridden: true }, { folds: takes(1), limits: raised });
    expect(replaced.does).toMatch(/ REMOVE po$/);
  });

  it("adds a limit full, less its cost; hides one that leaves; and drops one only if it is full", () => {
    const joined = bucketLimit(RPM, false);
    const hidden = readable(stored, {
      folds: new Map([["rpm", takes(1000).get("tpm")!]]),
      limits: [bucketLimit(TPM, true), joined],
    });
    expect(hidden.does).toContain("b_tpm_hd=1,");
    expect(hidden.does).toContain("b_rpm_cp=5000,b_rpm_ra=5000,b_rpm_rp=60000,b_rpm_tk=4000");
    const dropped = readable({}, { folds: new Map(), limits: [joined] });
    expect(dropped.requires).toContain("b_tpm_tk>=59000");
    expect(dropped.does).toContain("REMOVE b_tpm_tk,b_tpm_cp,");
  });
});

describe("what is only counted", () => {
  it("is counted once, also if it cancels out what is charged", () => {
    const folds = takes(1000);
    folds.get("tpm")!.countedMilli = -1000;
    const { does } = readable({ tokens: { tpm: 50_000 } }, { folds });
    expect(does).toBe("ADD b_tpm_tk -1000,b_wcu_tc 1,gr 1");
  });

  it("keeps the total of a limit that the same write drops", () => {
    const limits = [bucketLimit(RPM, false)];
    const { does } = readable({}, { folds: counts("tpm", 7), limits });
    expect(does).toContain("b_tpm_tc 7");
    expect(does).not.toMatch(/REMOVE.*b_tpm_tc/);
    expect(readable({}, { folds: new Map(), limits }).does).toMatch(/REMOVE.*b_tpm_tc/);
  });

  it("is added to by a limit that joins later", () => {
    const folds = new Map([["rpm", takes(1000).get("tpm")!]]);
    const limits = bucketLimits([TPM, RPM]);
    expect(readable({}, { folds, limits }).does).toMatch(/ADD .*b_rpm_tc 1000/);
    // As a statement it would be invalid on every bucket, and end the sharing of requests.
    const { expression } = update(shardImage({}), { folds, limits });
    expect(new ItemUpdate(shardKey(0, "a"), expression).statement("t")).toBeUndefined();
    // Nor may the first one that takes of it be invalid.
    expect(readable({}, { limits }).does).toMatch(/ADD .*b_rpm_tc 0/);
  });
});

describe("a call that takes from several buckets", () => {
  it("begins the count of what is undone with its first take, and adds to it with each give-back", () => {
    const folds = takes(1000);
    const first = readable({ tokens: { tpm: 50_000 } }, { folds, undone: 0 });
    expect(first.requires).toContain("attribute_not_exists(ud)");
    expect(first.does).toMatch(/^SET ud=0 ADD /);
    const next = readable({ tokens: { tpm: 50_000 }, undone: 0 }, { folds, undone: 0 });
    expect(next.does).not.toContain("ud");
    const back = { folds: settles(-1000), requests: -1, undone: 1 };
    expect(readable({ undone: 4 }, back).does).toMatch(/gr -1,ud 1$/);
  });
});

describe("what came by cascade", () => {
  it("is counted also if the parent's own calls cancel it out", () => {
    const folds = settles(-1000);
    folds.get("tpm")!.settle(1000, true);
    const change = { folds, requests: 0, cascadedRequests: 1 };
    expect(readable({}, change).does).toMatch(/ADD b_wcu_tc 1,gc 1,b_tpm_cc 1000$/);
  });

  it("leaves an ordinary bucket without a trace", () => {
    const limits = bucketLimits([TPM, RPM]);
    for (const stored of [{}, { tokens: { tpm: 5000 } }])
      for (const change of [{ folds: takes(1000) }, { folds: counts("ipd", 7), limits }])
        expect(readable(stored, change).does).not.toMatch(/_cc|gc/);
  });

  it("goes with the total of a limit that is dropped, and stays with it", () => {
    const limits = [bucketLimit(RPM, false)];
    expect(readable({}, { limits }).does).toMatch(/REMOVE.*b_tpm_tc,b_tpm_cc/);
    const folds = counts("tpm", -7);
    folds.get("tpm")!.count(7, true);
    const { does } = readable({}, { folds, limits });
    expect(does).toMatch(/ADD.*b_tpm_cc 7/);
    expect(does).not.toMatch(/REMOVE.*b_tpm_[tc]c/);
  });
});

describe("the slot of an operation", () => {
  const mark = { id: "me000.0005", writer: "me000", slot: 0 };
  const older = "begins_with(o0,me000.) AND o0<me000.0005";

  it.each([
    ["must hold an older id of the same writer", "me000.0003", false, older],
    ["that is free must stay so", undefined, false, "attribute_not_exists(o0)"],
    ["of another writer must be as seen", "other.0001", false, "o0=other.0001"],
    ["must be as seen after an unanswered write", "me000.0003", true, "o0=me000.0003"],
    ["must still be free after one", undefined, true, "attribute_not_exists(o0)"],
  ])("%s", (_, seenId, afterUnanswered, condition) => {
    const change = { folds: settles(-1), mark: { ...mark, seenId, afterUnanswered } };
    const { requires, does } = readable({}, change);
    expect(requires.slice(2).join(" AND ")).toBe(condition);
    expect(does).toContain("SET o0=me000.0005");
  });
});

describe("the reply", () => {
  const stored = { tokens: { tpm: 500 } };
  const mark = {
    id: "me000.0005",
    writer: "me000",
    slot: 0,
    seenId: undefined,
    afterUnanswered: false,
  };
  const whole = { folds: takes(1200), ttlMultiplier: 7, mark };

  it("shows only what was written when that is every balance", () =>
    expect(update(shardImage(stored), whole).returns).toBe("UPDATED_NEW"));

  it.each<[string, BucketImage, Partial<BucketChange>]>([
    ["the stamp was not written", shardImage({ tokens: { tpm: 50_000 } }), whole],
    ["the expiry was not written", shardImage(stored), { ...whole, ttlMultiplier: 0 }],
    ["one limit costs nothing", shardImage({ ...stored, limits: [RPM, TPM] }), whole],
    ["no id of the write is", shardImage(stored), { ...whole, mark: undefined }],
    ["limits change", shardImage(stored), { ...whole, limits: bucketLimits([RPM, TPM]) }],
  ])("shows the whole item when %s", (_, image, change) =>
    expect(update(image, change).returns).toBe("ALL_NEW"),
  );
});

function takes(...costs: readonly number[]): ReadonlyMap<string, LimitFold> {
  const fold = new LimitFold();
  for (const cost of costs) fold.take(cost);
  return new Map([["tpm", fold]]);
}

function counts(name: string, milli: number): ReadonlyMap<string, LimitFold> {
  const fold = new LimitFold();
  fold.count(milli);
  return new Map([[name, fold]]);
}

function settles(...costs: readonly number[]): ReadonlyMap<string, LimitFold> {
  const fold = new LimitFold();
  for (const cost of costs) fold.settle(cost);
  return new Map([["tpm", fold]]);
}

function update(image: BucketImage, change: Partial<BucketChange>): BucketUpdate {
  const rest: BucketChange = {
    folds: new Map(),
    limits: image.bucket.limits,
    overridden: false,
    requests: 1,
    cascadedRequests: 0,
    undone: undefined,
    writeUnits: 1,
    mark: undefined,
    ttlMultiplier: 0,
  };
  return buildUpdate(image, { ...rest, ...change }, AFTER_1_S);
}

/** An update a second after the last refill, with names and values in place of their aliases. */
function readable(
  stored: StoredShard,
  change: Partial<BucketChange>,
): { readonly requires: readonly string[]; readonly does: string } {
  const built = update(shardImage(stored), change).expression.build();
  const { ExpressionAttributeNames: names = {}, ExpressionAttributeValues: values = {} } = built;
  const resolved = (expression: string): string =>
    expression.replaceAll(/[#:]\w+/g, (alias) => names[alias] ?? toText(values[alias]!));
  return {
    requires: resolved(built.ConditionExpression).split(/ AND (?![^(]*\))/),
    does: resolved(built.UpdateExpression),
  };
}

function toText(value: AttributeValue): string {
  return getString(value) ?? String(getNumber(value));
}
