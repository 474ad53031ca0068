import type { Amounts, RateLimit } from "zae-limiter";
import { computeAllowed, roomIn, tightestUse, type Use } from "./bound.ts";
import { listChanges, type Call, type Change } from "./call-log.ts";
import type { ReadBack } from "./read-back.ts";
import { BUCKETS, KEYS, MODELS, PROJECT, type DemoBucket } from "./scenario.ts";
import { numberText } from "./text.ts";

/** One promise, and whether it was kept. */
export interface Check {
  readonly promise: string;
  readonly ok: boolean;
  readonly detail: string;
}

/**
 * What the checks compare: the calls of all processes, what the file says at the end, and the
 * lowest balances that the live view saw.
 */
export interface Evidence {
  readonly calls: readonly Call[];
  readonly stored: readonly ReadBack[];
  /** By `limitKey`. */
  readonly lowest: ReadonlyMap<string, number>;
}

/** Checks each promise on what was done. */
export function runChecks(evidence: Evidence): readonly Check[] {
  return [strict(evidence), belowZero(evidence), usageAddsUp(evidence), allOrNothing(evidence)];
}

/** The key of one limit of one bucket. */
export function limitKey(entityId: string, model: string, limitName: string): string {
  return `${entityId} ${model} ${limitName}`;
}

function strict({ calls, stored }: Evidence): Check {
  const uses = eachLimit((bucket, limit) => {
    const changes = listChanges(selectCalls(calls, bucket), limit.name);
    const name = limitKey(bucket.entityId, bucket.model, limit.name);
    return [
      tightestUse(changes, limit),
      computeUse(changes, limit, findStored(stored, bucket)),
    ].map((use) => ({ name, use }));
  }).flat();
  const { name, use: tightest } = uses.reduce((left, right) =>
    roomIn(right.use) < roomIn(left.use) ? right : left,
  );
  const [used, allowed] = [tightest.used, Math.floor(tightest.allowed)].map(numberText);
  const seconds = (tightest.ms / 1000).toFixed(1);
  return {
    promise: "Strict: no bucket gave more than it held and earned, in any interval",
    ok: uses.every(({ use }) => roomIn(use) >= 0),
    detail: `closest: ${name}, ${used} of at most ${allowed} in ${seconds} s`,
  };
}

/**
 * What was used from the first call to the end, together with what is left: the file must not hold
 * tokens that were never earned.
 */
function computeUse(
  changes: readonly Change[],
  limit: RateLimit,
  { available, readAtMs }: ReadBack,
): Use {
  const startMs = Math.min(readAtMs, ...changes.map((change) => change.startMs));
  const used = changes.reduce(
    (sum, { amount, kind }) => sum + (kind === "return" ? -amount : amount),
    0,
  );
  const ms = readAtMs - startMs;
  return {
    used: used + (available[limit.name] ?? limit.capacity),
    allowed: computeAllowed(limit, ms),
    ms,
  };
}

function belowZero({ calls, lowest, stored }: Evidence): Check {
  const debts = eachLimit((bucket, limit) => {
    const overruns = listChanges(selectCalls(calls, bucket), limit.name).filter(
      ({ kind }) => kind === "overrun",
    );
    const left = findStored(stored, bucket).available[limit.name] ?? limit.capacity;
    const least = Math.min(
      left,
      lowest.get(limitKey(bucket.entityId, bucket.model, limit.name)) ?? left,
    );
    return {
      name: limit.name,
      least,
      overrun: overruns.reduce((sum, { amount }) => sum + amount, 0),
    };
  });
  const findLeast = (limitName: string): string =>
    numberText(
      Math.min(...debts.filter(({ name }) => name === limitName).map((debt) => debt.least)),
    );
  const [tokens, requests] = [findLeast("tpm"), findLeast("rpm")];
  return {
    promise: "Only settlements go below zero, and by no more than they took",
    ok: debts.every((debt) => debt.least >= -debt.overrun),
    detail:
      `lowest balances seen: ${tokens} tpm, because tokens are settled after the call, ` +
      `and ${requests} rpm, because requests are not`,
  };
}

function usageAddsUp({ calls, stored }: Evidence): Check {
  const wrong: string[] = [];
  for (const bucket of BUCKETS) {
    const expected = sumUse(selectCalls(calls, bucket));
    for (const { window, total, requests } of findStored(stored, bucket).usage) {
      const same = requests === expected.rpm && sameAmounts(total, expected);
      if (!same)
        wrong.push(
          `${bucket.entityId} ${bucket.model} ${window}: ` +
            `stored ${JSON.stringify(total)}, expected ${JSON.stringify(expected)}`,
        );
    }
  }
  const { rpm, tpm } = sumUse(calls);
  return {
    promise:
      "Usage adds up: the file's windows equal what was consumed; " +
      "refused and failed calls left no trace",
    ok: wrong.length === 0,
    detail:
      wrong[0] ??
      `${numberText(rpm)} requests and ${numberText(tpm)} tokens, ` +
        "to the token, in hourly, daily and monthly windows",
  };
}

function allOrNothing({ stored }: Evidence): Check {
  const addUp = (entityIds: readonly string[], model: string): number =>
    stored
      .filter((read) => read.model === model && entityIds.includes(read.entityId))
      .reduce((sum, { usage }) => sum + (usage[0]?.total["tpm"] ?? 0), 0);
  const sums = MODELS.map(({ name }) => ({
    name,
    keys: addUp(KEYS, name),
    project: addUp([PROJECT], name),
  }));
  return {
    promise: "All or nothing: what the keys used is what their project used",
    ok: sums.every(({ keys, project }) => keys === project),
    detail: sums
      .map(({ name, keys, project }) => `${name} ${numberText(keys)} = ${numberText(project)}`)
      .join(", "),
  };
}

function eachLimit<T>(visit: (bucket: DemoBucket, limit: RateLimit) => T): readonly T[] {
  return BUCKETS.flatMap((bucket) => bucket.limits.map((limit) => visit(bucket, limit)));
}

/** The calls that took from a bucket: a key's own, and all of them for the project. */
function selectCalls(calls: readonly Call[], { entityId, model }: DemoBucket): readonly Call[] {
  return calls.filter(
    (call) => call.model === model && (entityId === PROJECT || call.key === entityId),
  );
}

function findStored(stored: readonly ReadBack[], { entityId, model }: DemoBucket): ReadBack {
  return stored.find((read) => read.entityId === entityId && read.model === model)!;
}

function sumUse(calls: readonly Call[]): { readonly rpm: number; readonly tpm: number } {
  const done = calls.filter(({ actual }) => actual !== undefined);
  return { rpm: done.length, tpm: done.reduce((sum, { actual = 0 }) => sum + actual, 0) };
}

function sameAmounts(
  stored: Amounts,
  { rpm, tpm }: { readonly rpm: number; readonly tpm: number },
): boolean {
  return (stored["rpm"] ?? 0) === rpm && (stored["tpm"] ?? 0) === tpm;
}
