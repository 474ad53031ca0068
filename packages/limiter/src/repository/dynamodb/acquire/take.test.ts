import { describe, expect, it } from "vitest";
import {
  createError,
  scriptedProcess,
  type ScriptedProcess,
} from "../../../../test/support/scripted-table.ts";
import {
  NOW_MS,
  shardImage,
  shardItem,
  shardKey,
  TPM,
  type StoredShard,
} from "../../../../test/support/shard-images.ts";
import { buildPolicy } from "../../../core/bucket/policy.ts";
import { takeFromShard } from "./take.ts";
import type { WantedClaim } from "./wanted-claim.ts";

const TPM_ONLY = buildPolicy([TPM], "resource");

describe("a take from one shard", () => {
  const KEY = shardKey(1);

  it("names the shard that it took from, and the policy that it was decided with", async () => {
    const process = withShard({ tpm: 10_000 });
    const taken = await takeFromShard(wanting(10), KEY, { requests: 1 }, process.writer);
    expect(taken).toMatchObject({
      kind: "taken",
      parts: [{ key: KEY, amounts: { tpm: 10_000 }, requests: 1, incarnation: { divisor: 2 } }],
    });
  });

  it.each([true, false])("counts by cascade what came so: %s", async (isCascaded) => {
    const process = withShard({ tpm: 10_000 });
    const wanted = { ...wanting(10), isCascaded };
    const taken = await takeFromShard(wanted, KEY, { requests: 1 }, process.writer);
    expect(taken).toMatchObject({ parts: [{ isCascaded }] });
    expect(process.table.item["b_tpm_cc"]).toEqual(isCascaded ? { N: "10000" } : undefined);
    expect(process.table.item["gc"]).toEqual(isCascaded ? { N: "1" } : undefined);
  });

  it("is refused when the shard does not hold it, as of when, and undecided when it is gone", async () => {
    const process = withShard({ tpm: 9999 });
    const refused = await takeFromShard(wanting(10), KEY, { requests: 1 }, process.writer);
    expect(refused).toMatchObject({ kind: "refused", atMs: NOW_MS });
    const gone = await takeFromShard(wanting(10), KEY, { requests: 1 }, scriptedProcess().writer);
    expect(gone).toMatchObject({ kind: "undecided" });
  });

  it("is undecided when it was throttled, and an error when it may have been applied", async () => {
    const throttled = withShard({ tpm: 10_000 });
    throttled.table.faults.push({ instead: createError("ThrottlingException") });
    const outcome = await takeFromShard(wanting(10), KEY, { requests: 1 }, throttled.writer);
    expect(outcome).toMatchObject({ kind: "undecided", throttled: { throttled: true } });
    const lost = withShard({ tpm: 10_000 });
    lost.table.faults.push({ instead: createError("Error", { code: "ECONNRESET" }) });
    await expect(
      takeFromShard(wanting(10), KEY, { requests: 1 }, lost.writer),
    ).rejects.toMatchObject({
      ambiguous: true,
    });
  });

  function withShard(tokens: NonNullable<StoredShard["tokens"]>): ScriptedProcess {
    const process = scriptedProcess({ maxAttempts: 1 });
    const stored = { shard: 1, divisor: 2, tokens };
    process.table.put(shardItem(stored));
    process.known.remember(KEY, shardImage(stored), process.known.stampRequest());
    return process;
  }
});

function wanting(tpm: number): WantedClaim {
  const costs = { tpm: tpm * 1000 };
  return {
    key: shardKey(),
    amounts: { tpm },
    costs,
    policy: TPM_ONLY,
    parentId: undefined,
    isCascaded: false,
  };
}
