import assert from "node:assert/strict";
import { isDeepStrictEqual } from "node:util";
import { seededRandom } from "zae-limiter/testing";
import type { Repository } from "zae-limiter";
import {
  applyLimits,
  ManifestError,
  planLimits,
  type Manifest,
  type PlanEntry,
} from "zae-limiter/manifest";
import { CoverageCounts } from "../support/seeded/coverage-counts.ts";
import { between, pick } from "../support/seeded/random-choice.ts";
import { handChange, neighbourChange } from "./changes-by-hand.ts";
import { applyInterrupted, INTERRUPTIONS } from "./interruption.ts";
import { apply, namedBy, NOTHING_STORED, type Content, type Owned } from "./model.ts";
import { EMPTY, ENTITIES, buildManifest, someSpec, type Spec } from "./spec.ts";
import { storedContent } from "./stored-content.ts";

/** What a run must meet to prove what it claims. */
const SITUATIONS = [
  "system level",
  "setting of the system level",
  "setting that goes back to its default",
  "resource level",
  "entity level",
  "entity level for all resources",
  "level that inherits",
  "level created",
  "level updated",
  "level deleted",
  "level unchanged",
  "record created",
  "record updated",
  "record with a parent",
  "level adopted",
  "drift",
  "drift repaired by the same manifest",
  "unmanaged neighbour",
  "unchanged manifest",
  "empty manifest over unmanaged neighbours",
  "other parent refused",
  "interrupted before a change",
  "interrupted after a change",
  "process gone",
  "interrupted apply taken up again",
  "interrupted apply followed by another manifest",
] as const;

export type Coverage = CoverageCounts<(typeof SITUATIONS)[number]>;

export function newCoverage(): Coverage {
  return new CoverageCounts(SITUATIONS);
}

const STEPS = 10;

/** One history of applies, changes by hand and interruptions. The seed decides all of it. */
export async function runHistory(
  seed: number,
  repository: Repository,
  coverage: Coverage,
): Promise<void> {
  const history = new History(seededRandom(seed), repository, coverage);
  try {
    for (let step = 0; step < STEPS; step += 1) await history.step();
    await history.applyEmpty();
  } catch (error) {
    const story = history.story.join("\n");
    throw new Error(`Seed ${seed} fails; again: SEED=${seed} SEEDS=1\n${story}`, { cause: error });
  }
}

class History {
  readonly story: string[] = [];
  readonly #random: () => number;
  readonly #repository: Repository;
  readonly #coverage: Coverage;
  /** The model: what is stored, and what of it belongs to manifests. */
  #content: Content = NOTHING_STORED;
  #owned: Owned = new Set();
  /** The manifest of the last apply, and whether that was interrupted. */
  #last: Spec = EMPTY;
  #isInterrupted = false;
  /** What was changed by hand since the last apply that finished. */
  #touched = new Set<string>();

  constructor(random: () => number, repository: Repository, coverage: Coverage) {
    this.#random = random;
    this.#repository = repository;
    this.#coverage = coverage;
  }

  async step(): Promise<void> {
    const choice = this.#random();
    if (choice < 0.3) await this.#apply(this.#nextSpec());
    else if (choice < 0.4) await this.#apply(this.#last);
    else if (choice < 0.6) await this.#changeByHand();
    else if (choice < 0.75) await this.#interrupt();
    else if (choice < 0.85) await this.#refuseOtherParent();
    else if (choice < 0.95) await this.#changeNeighbour();
    else await this.applyEmpty();
    assert.deepEqual(await storedContent(this.#repository), this.#content);
  }

  /** Everything managed goes, and exactly what is unmanaged stays. */
  async applyEmpty(): Promise<void> {
    const unmanaged = [...this.#content.levels].filter(([name]) => !this.#owned.has(name));
    if (unmanaged.length > 0) this.#coverage.count("empty manifest over unmanaged neighbours");
    await this.#apply(EMPTY);
    const { levels } = await storedContent(this.#repository);
    assert.deepEqual(levels, new Map(unmanaged));
  }

  #buildManifest(spec: Spec): Manifest {
    return buildManifest(spec, this.#repository.namespaceName);
  }

  #nextSpec(): Spec {
    const parents = new Map([...this.#content.records].map(([id, { parent }]) => [id, parent]));
    return someSpec(this.#random, this.#last, parents);
  }

  async #apply(spec: Spec): Promise<void> {
    this.story.push(`apply ${JSON.stringify(spec)}`);
    const manifest = this.#buildManifest(spec);
    const plan = await planLimits(this.#repository, manifest);
    const after = apply(spec, this.#content, this.#owned);
    const isChange = plan.entries.some(({ action }) => action !== "unchanged");
    assert.equal(
      isChange,
      !isDeepStrictEqual(after, this.#content),
      "the plan shows what will change",
    );
    this.#checkDrift(spec, plan.entries);
    this.#count(spec, plan.entries, after);
    const agreed = this.#random() < 0.5 ? { plan } : {};
    await applyLimits(this.#repository, manifest, agreed);
    assert.deepEqual(await storedContent(this.#repository), after);
    const again = (await planLimits(this.#repository, manifest)).entries;
    assert.deepEqual(
      again.filter(({ action }) => action !== "unchanged"),
      [],
    );
    this.#content = after;
    this.#owned = namedBy(spec);
    this.#last = spec;
    this.#isInterrupted = false;
    this.#touched.clear();
  }

  /** Only changes by hand cause drift. */
  #checkDrift(spec: Spec, entries: readonly PlanEntry[]): void {
    const changes = entries.filter(({ action }) => action !== "unchanged");
    for (const entry of changes) {
      const name = getName(entry);
      if (entry.drift) assert.ok(this.#touched.has(name), `${name} was not changed by hand`);
      else if (spec === this.#last && !this.#isInterrupted)
        assert.fail(`${name} differs, and the plan does not call it drift`);
      if (!entry.drift) continue;
      this.#coverage.count("drift");
      if (spec === this.#last) this.#coverage.count("drift repaired by the same manifest");
    }
  }

  async #changeByHand(): Promise<void> {
    const names = [...this.#owned, ...this.#content.records.keys()].sort();
    if (names.length === 0) return;
    const change = handChange(this.#random, pick(this.#random, names), this.#content);
    this.story.push(`by hand: ${change.story}`);
    await change.make(this.#repository);
    this.#content = change.after;
    this.#touched.add(change.touched);
  }

  async #changeNeighbour(): Promise<void> {
    const change = neighbourChange(this.#random, this.#content, {
      owned: this.#owned,
      last: this.#last,
    });
    if (change === undefined) return;
    this.story.push(`neighbour: ${change.story}`);
    await change.make(this.#repository);
    this.#content = change.after;
    this.#touched.add(change.touched);
    this.#coverage.count("unmanaged neighbour");
  }

  /** Cuts an apply at some operation. Each level and record is as before, or as it should be. */
  async #interrupt(): Promise<void> {
    const spec = this.#random() < 0.3 ? this.#last : this.#nextSpec();
    const kind = pick(this.#random, INTERRUPTIONS);
    const interruption = { kind, at: between(this.#random, 1, 8), ofWrites: true };
    const progress = await applyInterrupted(
      this.#repository,
      this.#buildManifest(spec),
      interruption,
    );
    this.story.push(
      `${kind} at write ${interruption.at} of apply, ${progress}: ${JSON.stringify(spec)}`,
    );
    const wanted = apply(spec, this.#content, this.#owned);
    const now = await storedContent(this.#repository);
    checkBetween(now, this.#content, wanted);
    if (progress === "nothing") return assert.deepEqual(now, this.#content);
    if (progress === "over") {
      assert.deepEqual(now, wanted);
      this.#owned = namedBy(spec);
      this.#touched.clear();
    } else {
      this.#coverage.count(SITUATION_OF[kind]);
      this.#owned = new Set([...this.#owned, ...namedBy(spec)]);
    }
    this.#content = now;
    this.#last = spec;
    this.#isInterrupted = progress === "begun";
  }

  async #refuseOtherParent(): Promise<void> {
    const records = [...this.#content.records];
    if (records.length === 0) return;
    const [id, { parent }] = pick(this.#random, records);
    const other = ENTITIES.find((entity) => entity !== parent && entity !== id)!;
    const entities = Object.fromEntries([
      [id, { parent: other, resources: {} }],
      [other, { resources: {} }],
    ]);
    const manifest = this.#buildManifest({ ...EMPTY, entities });
    this.story.push(`refused: ${other} as the parent of ${id}`);
    await assert.rejects(applyLimits(this.#repository, manifest), ManifestError);
    this.#coverage.count("other parent refused");
  }

  #count(spec: Spec, entries: readonly PlanEntry[], after: Content): void {
    const coverage = this.#coverage;
    if (spec === this.#last)
      coverage.count(
        this.#isInterrupted ? "interrupted apply taken up again" : "unchanged manifest",
      );
    else if (this.#isInterrupted) coverage.count("interrupted apply followed by another manifest");
    for (const { level, action, resource, managed, values } of entries) {
      if (level === "record") {
        if (action === "create") coverage.count("record created");
        if (action === "update") coverage.count("record updated");
        continue;
      }
      coverage.count(`${level} level`);
      if (level === "entity" && resource === "_default_")
        coverage.count("entity level for all resources");
      if (action === "update" && !managed) coverage.count("level adopted");
      coverage.count(
        action === "unchanged" ? "level unchanged" : (`level ${action}d` as "level created"),
      );
      for (const { name, after: text } of values) {
        if (!/^(on_|audit_|usage_)/.test(name)) continue;
        coverage.count("setting of the system level");
        if (text === undefined) coverage.count("setting that goes back to its default");
      }
    }
    if ([...after.levels.values()].some(({ inherit }) => inherit))
      coverage.count("level that inherits");
    if ([...after.records.values()].some(({ parent }) => parent !== undefined))
      coverage.count("record with a parent");
  }
}

const SITUATION_OF = {
  "error-before": "interrupted before a change",
  "error-after": "interrupted after a change",
  gone: "process gone",
} as const;

/** What the model calls the subject of an entry. */
function getName({ level, entityId, resource }: PlanEntry): string {
  if (level === "system") return "system";
  if (level === "record") return `record ${entityId}`;
  return level === "resource" ? `resource ${resource}` : `entity ${entityId} on ${resource}`;
}

/** Each level, record and setting is as before, or as it should be: no change is half made. */
export function checkBetween(now: Content, before: Content, wanted: Content): void {
  const [parts, old, next] = [listParts(now), listParts(before), listParts(wanted)];
  for (const name of new Set([...parts.keys(), ...old.keys(), ...next.keys()]))
    assert.ok(
      [old, next].some((either) => isDeepStrictEqual(parts.get(name), either.get(name))),
      `${name} is neither as before nor as it should be`,
    );
}

function listParts({ systemLimits, settings, levels, records }: Content): Map<string, unknown> {
  return new Map<string, unknown>([
    ["limits of the system", systemLimits],
    ...Object.entries(settings),
    ...levels,
    ...[...records].map(([id, record]) => [`record ${id}`, record] as const),
  ]);
}
