import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { Claim, currentClaim, type Claimed, type ClaimOutcome } from "./claim.ts";
import { processIdentity } from "./process-identity.ts";

interface Named extends Claimed {
  readonly name: string;
}

const holder = processIdentity(process.pid)!;
const dead = { pid: spawnSync("true").pid, began: "long ago" };
let folder: string;

beforeEach(() => {
  folder = join(mkdtempSync(join(tmpdir(), "zae-limiter-claim-")), "folder");
});

afterEach(() => rmSync(join(folder, ".."), { recursive: true }));

const take = (name: string): Promise<ClaimOutcome<Named>> =>
  Claim.take<Named>(folder, { holder, name });

function claimOf(outcome: ClaimOutcome<Named>): Claim<Named> {
  if ("heldBy" in outcome) throw new Error(`It is held by ${outcome.heldBy.name}.`);
  return outcome.claim;
}

it("one of many at once gets a folder, and the others learn who", async () => {
  const outcomes = await Promise.all(["a", "b", "c", "d", "e"].map(take));
  const winners = outcomes.filter((outcome) => "claim" in outcome);
  expect(winners).toHaveLength(1);
  const { name } = claimOf(winners[0]!).content;
  expect(outcomes.flatMap((outcome) => ("heldBy" in outcome ? [outcome.heldBy.name] : []))).toEqual(
    [name, name, name, name],
  );
});

it("one of many at once gets what a process that died has left", async () => {
  await Claim.take<Named>(folder, { holder: dead, name: "dead" });
  const outcomes = await Promise.all(["a", "b", "c"].map(take));
  const winners = outcomes.filter((outcome) => "claim" in outcome);
  expect(winners).toMatchObject([{ before: { name: "dead" } }]);
  expect(readdirSync(folder)).toEqual(["claim-2.json"]);
});

it("somebody who has looked long ago, and comes late, gets nothing", async () => {
  await Claim.take<Named>(folder, { holder: dead, name: "dead" });
  const late = take("late");
  // In the meantime, the second has been and gone, and the third is there.
  writeFileSync(join(folder, "claim-3.json"), JSON.stringify({ holder, name: "third" }));
  expect(await late).toMatchObject({ heldBy: { name: "third" } });
  expect(readdirSync(folder).toSorted()).toEqual(["claim-1.json", "claim-3.json"]);
});

it("a folder can be had again when it was released, not before", async () => {
  const first = claimOf(await take("first"));
  expect(await take("second")).toMatchObject({ heldBy: { name: "first" } });
  first.update({ released: true });
  expect(await take("third")).toMatchObject({ before: { name: "first", released: true } });
  expect(await currentClaim(folder)).toMatchObject({ number: 2, content: { name: "third" } });
});

it("another process with the number of one that died holds nothing", async () => {
  await Claim.take<Named>(folder, { holder: { pid: process.pid, began: "earlier" }, name: "old" });
  expect(await take("new")).toMatchObject({ before: { name: "old" } });
});

it("a claim that was never written does not stay for ever", async () => {
  claimOf(await take("first")).update({ released: true });
  writeFileSync(join(folder, "claim-2.json"), "");
  expect(claimOf(await take("next")).content.name).toBe("next");
});

it("a folder that cannot be created is an error", async () => {
  await expect(Claim.take(join(process.execPath, "x"), { holder })).rejects.toThrow("ENOTDIR");
  expect(await currentClaim(join(process.execPath, "x"))).toBeUndefined();
});
