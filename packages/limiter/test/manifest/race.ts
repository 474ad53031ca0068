import assert from "node:assert/strict";
import { ApplyConflictError, type Repository } from "zae-limiter";
import { applyLimits, type Manifest } from "zae-limiter/manifest";
import { seededRandom } from "zae-limiter/testing";
import { pausedRepository } from "../support/paused-repository.ts";
import { CoverageCounts } from "../support/seeded/coverage-counts.ts";
import { between } from "../support/seeded/random-choice.ts";
import { apply, namedBy, type Content } from "./model.ts";
import { EMPTY, buildManifest, someSpec, type Spec } from "./spec.ts";
import { buildLimits, storedContent } from "./stored-content.ts";

const SITUATIONS = [
  "both finished, one after the other",
  "refused at the start",
  "overtaken before its first change",
  "overtaken between two changes",
  "overtaken after its last change",
] as const;

export type RaceCoverage = CoverageCounts<(typeof SITUATIONS)[number]>;

export function newRaceCoverage(): RaceCoverage {
  return new CoverageCounts(SITUATIONS);
}

/**
 * Two applies at once. Every operation of both waits until the seed chooses it. In the end the
 * store holds one manifest whole, nothing of the other, and what is unmanaged.
 */
export async function runRace(
  seed: number,
  repository: Repository,
  coverage: RaceCoverage,
): Promise<void> {
  const random = seededRandom(seed);
  const manifestIn = (spec: Spec): Manifest => buildManifest(spec, repository.namespaceName);
  const first = someSpec(random, EMPTY, new Map());
  await applyLimits(repository, manifestIn(first));
  await repository.setResourceDefaults("neighbour", buildLimits({ rpm: "9/min" }));
  const before = await storedContent(repository);
  const parents = new Map([...before.records].map(([id, { parent }]) => [id, parent]));
  const specs = [0, 1].map(() => someRival(random, someSpec(random, first, parents), before));
  const turns = new Turns(random);
  const runs = specs.map((spec, index) => {
    const run = { changes: 0, hasBegun: false, puts: 0 };
    const paused = pausedRepository(repository, (operation) => {
      if (run.puts > 0) run.hasBegun = true;
      if (operation === "putProvisionerState") run.puts += 1;
      return turns.wait(index);
    });
    const onProgress = ({ done }: { readonly done: number }): void => void (run.changes = done);
    return { run, ended: applyLimits(paused, manifestIn(spec), { onProgress }) };
  });
  const answers = await turns.until(Promise.allSettled(runs.map(({ ended }) => ended)));
  const now = await storedContent(repository);
  const { appliedHash, pending } = await repository.getProvisionerState();
  const winner = specs.findIndex((spec) => manifestIn(spec).hash === appliedHash);
  assert.ok(winner >= 0 && pending === undefined, `seed ${seed}: the state names no winner`);
  assert.equal(answers[winner]?.status, "fulfilled", `seed ${seed}`);
  const loser = specs[1 - winner]!;
  const answer = answers[1 - winner]!;
  if (answer.status === "rejected")
    assert.ok(answer.reason instanceof ApplyConflictError, `seed ${seed}: ${answer.reason}`);
  checkWhole(now, {
    after: apply(specs[winner]!, before, new Set([...namedBy(first), ...namedBy(loser)])),
    records: new Set([...before.records.keys(), ...Object.keys(loser.entities)]),
    seed,
  });
  coverage.count(getSituation(answer.status, runs[1 - winner]!.run));
}

/** What the loser set and the winner does not declare is "block", as if it were not stored. */
function listLevels({ systemLimits, settings, levels }: Content): object {
  const { on_unavailable: set } = settings;
  const meant = { ...settings, on_unavailable: set === "none" ? "block" : set };
  return { systemLimits, settings: meant, levels };
}

/** The levels of one manifest; the other may have created records, which are never deleted. */
function checkWhole(
  now: Content,
  {
    after,
    records,
    seed,
  }: { readonly after: Content; readonly records: ReadonlySet<string>; readonly seed: number },
): void {
  const { records: wanted } = after;
  assert.deepEqual(
    listLevels(now),
    listLevels(after),
    `seed ${seed}: again with SEED=${seed} SEEDS=1`,
  );
  for (const id of now.records.keys())
    assert.ok(wanted.has(id) || records.has(id), `seed ${seed}: record ${id}`);
  for (const id of wanted.keys()) assert.ok(now.records.has(id), `seed ${seed}: record ${id}`);
}

function getSituation(
  status: PromiseSettledResult<unknown>["status"],
  run: { readonly changes: number; readonly hasBegun: boolean; readonly puts: number },
): (typeof SITUATIONS)[number] {
  if (status === "fulfilled") return "both finished, one after the other";
  if (!run.hasBegun) return "refused at the start";
  if (run.puts === 2) return "overtaken after its last change";
  return run.changes === 0 ? "overtaken before its first change" : "overtaken between two changes";
}

/**
 * A manifest with a level that the other one lacks. New records have no parent: the two might
 * choose different ones, and then the one that comes later could not be applied.
 */
function someRival(random: () => number, spec: Spec, { records }: Content): Spec {
  const entities = Object.entries(spec.entities).map(([id, entity]) => {
    const { parent: _, ...orphan } = entity;
    return [id, records.has(id) ? entity : orphan] as const;
  });
  const own = { limits: { rpm: "1/min" }, inherit: false };
  return {
    system: spec.system,
    resources: { ...spec.resources, [`only-${between(random, 1, 1e6)}`]: own },
    entities: Object.fromEntries(entities),
  };
}

/** How many operations one of them may make in a row. An apply has about 50. */
const LONGEST_BURST = 20;

/** Releases waiting operations one by one. Which run continues, and for how long, is random. */
class Turns {
  readonly #waiting: readonly (() => void)[][] = [[], []];
  readonly #random: () => number;

  constructor(random: () => number) {
    this.#random = random;
  }

  wait(index: number): Promise<void> {
    return new Promise((resolve) => this.#waiting[index]!.push(resolve));
  }

  async until<T>(work: Promise<T>): Promise<T> {
    const over = new AbortController();
    const ended = work.finally(() => over.abort());
    for (let favoured = 0, left = 0; !over.signal.aborted; left -= 1) {
      if (left <= 0) {
        favoured = between(this.#random, 0, 1);
        left = between(this.#random, 1, LONGEST_BURST);
      }
      // The operation that was released runs up to the next one first.
      await new Promise((resolve) => setImmediate(resolve));
      const [own, others] = [this.#waiting[favoured]!, this.#waiting[1 - favoured]!];
      const queue = own.length > 0 ? own : others;
      queue.splice(between(this.#random, 0, queue.length - 1), 1)[0]?.();
    }
    return ended;
  }
}
