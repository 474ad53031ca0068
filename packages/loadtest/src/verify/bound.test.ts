import { describe, expect, it } from "vitest";
import { Limit } from "zae-limiter";
import { seededRandom } from "zae-limiter/testing";
import type { BucketEvent } from "../ledger/read-ledger.ts";
import { checkBound } from "./bound.ts";

const CAPACITY = 100;
const limit = Limit.custom({
  name: "tpm",
  capacity: CAPACITY,
  refillAmount: 50,
  refillPeriodSeconds: 1,
});
const limits = new Map([["tpm", limit]]);
const RATE = 0.05;

describe("the bound", () => {
  it("is never reported as broken by a correct bucket, however late its answers are", () => {
    for (let seed = 1; seed <= 400; seed += 1) {
      const { worst } = checkBound("tpm", simulate(seed, { longestMs: 400, excess: 1, lost: 0.1 }));
      expect(worst, `seed ${seed}`).toBeUndefined();
    }
  });

  it("is reported as broken by a bucket that holds 5 % more, if answers are prompt", () => {
    const found = Array.from({ length: 20 }, (_, seed) =>
      checkBound("tpm", simulate(seed + 1, { longestMs: 2, excess: 1.05, lost: 0 })),
    );
    expect(found.filter(({ worst }) => worst === undefined)).toEqual([]);
  });

  // Grants and a return that were decided in another order than they were answered.
  it("counts a return neither before it may have been written nor after", () => {
    const events = [
      grant(0, 0, 50),
      grant(1100, 1400, 100),
      end(1150, 1300, -50),
      grant(1240, 1350, 50),
    ];
    expect(checkBound("tpm", events).worst).toBeUndefined();
    expect(checkBound("tpm", [...events, grant(1700, 1710, 60)]).worst).toBeDefined();
  });

  it("refuses nothing for a debt that was written after the grant", () => {
    expect(checkBound("tpm", [end(500, 600, 500), grant(0, 1000, 10)]).worst).toBeUndefined();
    expect(checkBound("tpm", [end(500, 600, 500), grant(700, 900, 10)]).worst).toBeDefined();
  });

  it("is the larger one around a change of the limits", () => {
    const larger = new Map([["tpm", Limit.custom({ ...limit, capacity: 150 })]]);
    const change = (at: number): BucketEvent => ({ ...grant(at, at, 150), limits: larger });
    expect(checkBound("tpm", [grant(0, 0, 0), change(10_000)]).worst).toBeUndefined();
    expect(checkBound("tpm", [grant(0, 0, 0), grant(9000, 9000, 140), change(20_000)]).worst).toBe(
      undefined,
    );
    expect(
      checkBound("tpm", [grant(0, 0, 0), grant(9000, 9000, 140), change(200_000)]).worst,
    ).toBeDefined();
  });
});

function grant(sent: number, answered: number, tpm: number): BucketEvent {
  return { kind: "grant", limits, amounts: { tpm }, sent, answered };
}

function end(sent: number, answered: number | undefined, tpm: number): BucketEvent {
  return { kind: "end", limits, deltas: { tpm }, sent, answered };
}

/** A bucket of real numbers, whose clients see its decisions late. */
function simulate(
  seed: number,
  { longestMs, excess, lost }: Record<"longestMs" | "excess" | "lost", number>,
): readonly BucketEvent[] {
  const random = seededRandom(seed);
  const late = (): number => random() * longestMs;
  const events: BucketEvent[] = [];
  const ends: { readonly at: number; readonly delta: number }[] = [];
  let [balance, refilledAt] = [CAPACITY * excess, 0];
  const refill = (at: number): void => {
    balance = Math.min(CAPACITY * excess, balance + RATE * (at - refilledAt));
    refilledAt = at;
  };
  const endUntil = (until: number): void => {
    ends.sort((one, other) => one.at - other.at);
    while (ends.length > 0 && ends[0]!.at <= until) {
      const { at, delta } = ends.shift()!;
      refill(at);
      balance = Math.min(CAPACITY * excess, balance - delta);
      events.push(end(at - late(), random() < lost ? undefined : at + late(), delta));
    }
  };
  for (let at = 0, call = 0; call < 300; call += 1) {
    at += random() * 100;
    endUntil(at);
    refill(at);
    const amount = Math.floor(random() * 60);
    if (balance < amount) continue;
    balance -= amount;
    events.push(grant(at - late(), at + late(), amount));
    const delta = Math.floor(random() * 80) - amount;
    if (random() < 0.7) ends.push({ at: at + random() * 2000, delta });
  }
  return events;
}
