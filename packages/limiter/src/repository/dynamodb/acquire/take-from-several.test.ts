import { describe, expect, it } from "vitest";
import { NOW_MS, shardKey, TPM } from "../../../../test/support/shard-images.ts";
import { Limit } from "../../../core/limit.ts";
import { buildPolicy } from "../../../core/bucket/policy.ts";
import type { ReceiptPart, Refused, Taken } from "./receipt.ts";
import { takeFromSeveral } from "./take-from-several.ts";
import type { WantedClaim } from "./wanted-claim.ts";

const POLICY = buildPolicy([TPM], "resource");
const FOUND = buildPolicy([Limit.perMinute("tpm", 120)], "resource");
const CHILD = buildClaim("child");
const PARENT = { ...buildClaim("parent"), isCascaded: true };
const CLAIMS = [CHILD, PARENT];

describe("a call that takes from several buckets", () => {
  it("takes from all of them at the same time", async () => {
    const calls = scripted({ child: "taken", parent: "taken" });
    const outcome = await takeFromSeveral(CLAIMS, calls);
    expect(outcome).toEqual({ kind: "taken", parts: CLAIMS.map(buildPart) });
    expect(calls.log).toEqual(["take child", "take parent"]);
  });

  it("gives back the tokens taken when another refuses", async () => {
    const calls = scripted({ child: "refused", parent: "taken" });
    const outcome = await takeFromSeveral(CLAIMS, calls);
    expect(outcome).toMatchObject({ kind: "refused", atMs: NOW_MS });
    expect(calls.log).toEqual(["take child", "take parent", "give back parent"]);
  });

  it("fails with an error of any of them, once the rest was given back", async () => {
    const error = new Error("away");
    const calls = scripted({ child: error, parent: "taken" });
    await expect(takeFromSeveral(CLAIMS, calls)).rejects.toBe(error);
    expect(calls.log.slice(2)).toEqual(["give back parent"]);
  });

  it("fails although another has refused: a refusal would hide the error", async () => {
    const error = new Error("away");
    const calls = scripted({ child: "refused", parent: error });
    await expect(takeFromSeveral(CLAIMS, calls)).rejects.toBe(error);
  });

  it("is refused with the policies that were found, also of the buckets that granted", async () => {
    const policies = { child: FOUND, parent: FOUND };
    const calls = scripted({ child: "taken", parent: "refused" }, policies);
    const refused = await takeFromSeveral(CLAIMS, calls);
    expect(refused).toMatchObject({ claims: [{ policy: FOUND }, { policy: FOUND }] });
  });
});

type Answer = "taken" | "refused" | Error;

/** Buckets with scripted answers and policies. */
function scripted(
  answers: Readonly<Record<string, Answer>>,
  policies: Readonly<Record<string, WantedClaim["policy"]>> = {},
): Parameters<typeof takeFromSeveral>[1] & { readonly log: readonly string[] } {
  const log: string[] = [];
  const take = async (claim: WantedClaim): Promise<Taken | Refused> => {
    const { entityId } = claim.key;
    log.push(`take ${entityId}`);
    const answer = answers[entityId];
    if (answer instanceof Error) throw answer;
    const found = { ...claim, policy: policies[entityId] ?? claim.policy };
    return answer === "taken"
      ? { kind: "taken", parts: [buildPart(found)] }
      : { kind: "refused", atMs: NOW_MS, claim: found };
  };
  const giveBack = async ({ entityId }: ReceiptPart): Promise<void> => {
    log.push(`give back ${entityId}`);
  };
  return { take, giveBack, log };
}

function buildClaim(entityId: string): WantedClaim {
  const key = shardKey(0, entityId);
  return {
    key,
    amounts: { tpm: 1 },
    costs: { tpm: 1000 },
    policy: POLICY,
    parentId: undefined,
    isCascaded: false,
  };
}

function buildPart({ key, costs, policy, isCascaded }: WantedClaim): ReceiptPart {
  return {
    key,
    entityId: key.entityId,
    resource: key.resource,
    amounts: costs,
    policy,
    requests: 1,
    isCascaded,
    incarnation: {
      creation: "other.0000",
      divisor: 1,
      splitAtMs: undefined,
      expiredBySeconds: undefined,
    },
  };
}
