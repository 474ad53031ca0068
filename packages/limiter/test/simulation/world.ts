import {
  EntityExistsError,
  EntityNotFoundError,
  ValidationError,
  type Repository,
} from "zae-limiter";
import { ManualClock } from "zae-limiter/testing";
import { ENTITIES, LIMIT_SETS, RESOURCES } from "./fixtures.ts";
import { Client, SkewedClock, type Backend, type Run } from "./client.ts";
import { compareAvailable, compareBuckets, compareChecked, compareUsage } from "./compare.ts";
import { acquire, retry } from "./acquiring.ts";
import { charge } from "./charging.ts";
import type { HeldLease, RefusedCall } from "./held-lease.ts";
import { endLease, useLease } from "./lease-actions.ts";
import { BrokenPromise, Oracle } from "../oracle/oracle.ts";
import type { WindowLength } from "../oracle/oracle-usage.ts";
import type { LimitSpec } from "../oracle/terms.ts";
import type { Situation, Coverage } from "./coverage.ts";
import { splitAndMergeAll } from "./reshaping.ts";
import { LARGEST_SKEW_MS, type History, type Step } from "./steps.ts";

const WINDOWS: readonly WindowLength[] = ["hourly", "daily", "monthly"];

/** Clients, their store, their clock, and the oracle that watches them. */
export class World {
  readonly clock: ManualClock;
  readonly oracle = new Oracle();
  readonly #backend: Backend;
  readonly #history: History;
  readonly #coverage: Coverage;
  readonly #clients: Client[] = [];
  readonly #repositories: Repository[] = [];
  readonly #trace: string[] | undefined;
  /** Open leases, oldest first. */
  leases: HeldLease[] = [];
  lastRefused: RefusedCall | undefined;
  /** The bucket that was in the middle of the current step. */
  focus: { readonly entityId: string; readonly resource: string } = {
    entityId: "c",
    resource: "r",
  };
  readonly #defaults: readonly LimitSpec[] | undefined;
  #latestMs: number;
  #run: Run | undefined;
  stepNumber = 0;

  constructor(options: {
    readonly backend: Backend;
    readonly history: History;
    readonly coverage: Coverage;
    readonly trace?: string[];
  }) {
    this.#backend = options.backend;
    this.#history = options.history;
    this.#coverage = options.coverage;
    this.#trace = options.trace;
    this.clock = new ManualClock(options.history.startMs);
    this.#latestMs = options.history.startMs + LARGEST_SKEW_MS;
    const { defaults } = options.history;
    this.#defaults = defaults === undefined ? undefined : LIMIT_SETS[defaults];
    if (this.#defaults !== undefined) this.oracle.config.setDefaults(this.#defaults);
  }

  /** Plays the history; throws `BrokenPromise` at the first step that breaks one. */
  async run(): Promise<void> {
    this.#run = await this.#backend.begin();
    try {
      await this.#gather();
      for (const step of this.#history.steps) {
        this.stepNumber += 1;
        await this.#take(step);
        await this.#compare(step);
      }
      await splitAndMergeAll(this, this.#anyone());
      await this.#compareAllUsage();
    } finally {
      for (const repository of this.#repositories) await repository.close();
      await this.#run.end?.();
    }
  }

  client(index: number): Client {
    return this.#clients[index % this.#clients.length]!;
  }

  count(situation: Situation): void {
    this.#coverage.count(situation);
  }

  /** Adds a line to the story of the current step. */
  say(line: () => string): void {
    this.#trace?.push(`${String(this.stepNumber).padStart(4)}  ${line()}`);
  }

  /**
   * A client dies with its leases, without ending them; another one takes its place.
   */
  async crash(client: Client): Promise<void> {
    this.say(() => `client ${client.index} crashes`);
    const held = this.leases.filter((lease) => lease.client === client);
    if (held.length === 0) this.count("crash of a client without leases");
    for (const { oracleLease, tookMore } of held) {
      this.count("crash between acquire and settlement");
      if (oracleLease.hasDifferences) this.count("crash with differences not yet written");
      if (tookMore) this.count("crash after a further take");
    }
    this.leases = this.leases.filter((lease) => lease.client !== client);
    const { index, skewMs } = client;
    const clock = this.#backend.separate ? new SkewedClock(this.clock) : client.clock;
    const repository = this.#backend.separate ? await this.#open(clock, skewMs) : client.repository;
    this.#clients[index] = new Client({
      index,
      skewMs,
      clock,
      repository,
      loose: this.#backend.loose === true,
      defaults: this.#defaults,
    });
  }

  async #gather(): Promise<void> {
    const shared = new SkewedClock(this.clock);
    for (const [index, skewMs] of this.#history.skewsMs.entries()) {
      if (skewMs !== 0) this.count("skewed clocks");
      const clock = this.#backend.separate ? new SkewedClock(this.clock) : shared;
      const repository =
        this.#backend.separate || index === 0
          ? await this.#open(clock, skewMs)
          : this.#clients[0]!.repository;
      this.#clients.push(
        new Client({
          index,
          skewMs,
          clock,
          repository,
          loose: this.#backend.loose === true,
          defaults: this.#defaults,
        }),
      );
    }
  }

  async #open(clock: SkewedClock, skewMs: number): Promise<Repository> {
    clock.skewMs = skewMs;
    const repository = await this.#run!.open(clock);
    this.#repositories.push(repository);
    return repository;
  }

  async #take(step: Step): Promise<void> {
    switch (step.kind) {
      case "acquire":
        return acquire(this, step);
      case "charge":
        return charge(this, step);
      case "use":
        return useLease(this, step);
      case "end":
        return endLease(this, step);
      case "retry":
        return retry(this, step.early);
      case "crash":
        return this.crash(this.client(step.client));
      case "clock":
        return this.moveClock(step.ms);
      case "window end":
        return this.#goToWindowEnd(step);
      case "set limits":
      case "delete limits":
        return this.#configure(step);
      case "create entity":
        return this.#create(step);
      case "delete entity":
        return this.#delete(step.entityId);
    }
  }

  moveClock(ms: number): void {
    this.say(() => `the clock moves by ${ms} ms`);
    this.count(ms > 0 ? "clock step forward" : "clock step backward");
    if (ms > 86_400_000) this.count("clock step of more than a day");
    this.clock.set(this.clock.now() + ms);
    this.#latestMs = Math.max(this.#latestMs, this.clock.now() + LARGEST_SKEW_MS);
  }

  #goToWindowEnd({ entityId, resource, offsetMs }: Extract<Step, { kind: "window end" }>): void {
    const nowMs = this.clock.now();
    const places = [
      { entityId, resource },
      ...ENTITIES.flatMap((of) => RESOURCES.map((on) => ({ entityId: of, resource: on }))),
    ];
    for (const place of places) {
      const balances = this.oracle.bucket(place.entityId, place.resource)?.balances ?? [];
      const ends = balances.map(({ endMs = 0 }) => endMs).filter((endMs) => endMs > nowMs + 1);
      if (ends.length === 0) continue;
      this.focus = place;
      return this.moveClock(Math.min(...ends) + offsetMs - nowMs);
    }
  }

  async #configure(step: Extract<Step, { kind: "set limits" | "delete limits" }>): Promise<void> {
    const { entityId, resource, level } = step;
    const { repository } = this.#anyone();
    const limits =
      step.kind === "set limits" ? LIMIT_SETS[step.limits % LIMIT_SETS.length] : undefined;
    const inherit = step.kind === "set limits" && step.inherit;
    if (inherit && level < 3) this.count("level that inherits");
    this.say(
      () =>
        `${step.kind}${inherit ? " that inherit" : ""} at ${LEVELS[level]} (${entityId}, ${resource})${limits === undefined ? "" : `: ${JSON.stringify(limits)}`}`,
    );
    this.count("configuration change");
    if (this.leases.length > 0) this.count("configuration change under a lease");
    if (level === 0 || level === 1) {
      const of = level === 0 ? { resource } : {};
      await (limits === undefined
        ? repository.deleteLimits(entityId, of)
        : repository.setLimits(entityId, limits, { ...of, inherit }));
      this.oracle.config.set({ entityId, ...of }, limits, inherit);
    } else if (level === 2) {
      await (limits === undefined
        ? repository.deleteResourceDefaults(resource)
        : repository.setResourceDefaults(resource, limits, { inherit }));
      this.oracle.config.set({ resource }, limits, inherit);
    } else {
      await (limits === undefined
        ? repository.deleteSystemDefaults()
        : repository.setSystemDefaults(limits, { inherit }));
      this.oracle.config.set({}, limits, inherit);
    }
    this.focus = { entityId, resource };
  }

  async #create(step: Extract<Step, { kind: "create entity" }>): Promise<void> {
    const { entityId, cascade } = step;
    const parentId = step.parentId === entityId ? undefined : step.parentId;
    this.say(() => `create entity ${entityId} with parent ${parentId} and cascade ${cascade}`);
    const expected = this.oracle.config.create(entityId, parentId, cascade);
    const real = await this.#anyone()
      .repository.createEntity(entityId, { cascade, ...(parentId !== undefined && { parentId }) })
      .then(() => undefined, nameOfError);
    if (real !== expected)
      throw new BrokenPromise(`creating ${entityId} gave ${real}, and must give ${expected}`);
    if (expected === "EntityExistsError") await this.#setCascade(entityId, cascade);
    if (expected === undefined && this.leases.some(({ lease }) => lease.entityId === entityId))
      this.count("other parent under a lease");
  }

  async #setCascade(entityId: string, cascade: boolean): Promise<void> {
    const before = this.oracle.config.cascadesTo(entityId);
    this.oracle.config.setCascade(entityId, cascade);
    const { parentId } = await this.#anyone().repository.updateEntity(entityId, { cascade });
    const after = this.oracle.config.cascadesTo(entityId);
    if ((cascade ? parentId : undefined) !== after)
      throw new BrokenPromise(`${entityId} cascades to ${parentId}, and must cascade to ${after}`);
    if (before !== after && this.leases.some(({ lease }) => lease.entityId === entityId))
      this.count("other cascade under a lease");
  }

  async #delete(entityId: string): Promise<void> {
    this.say(() => `delete entity ${entityId}`);
    const { oracle } = this;
    let expected: string | undefined;
    if (oracle.config.hasChildren(entityId)) expected = "ValidationError";
    else if (oracle.config.delete(entityId) + oracle.deleteBuckets(entityId) === 0)
      expected = "EntityNotFoundError";
    else if (this.leases.some(({ lease }) => lease.entityId === entityId))
      this.count("entity deleted under a lease");
    const real = await this.#anyone()
      .repository.deleteEntity(entityId)
      .then(() => undefined, nameOfError);
    if (real !== expected)
      throw new BrokenPromise(`deleting ${entityId} gave ${real}, and must give ${expected}`);
  }

  /** The client whose turn it is to manage. */
  #anyone(): Client {
    const client = this.client(this.stepNumber);
    client.now();
    return client;
  }

  /**
   * After every step: all balances, what the bucket in focus shows, and what one of its windows, in
   * turn, counts now. A step that writes to no bucket is followed by a look at the entity in focus
   * alone: the next step that does write looks at all of them again.
   */
  async #compare({ kind }: Step): Promise<void> {
    const client = this.#anyone();
    const { entityId, resource } = this.focus;
    const isQuiet = QUIET_STEPS.has(kind);
    const debts = await compareBuckets(client, this.oracle, isQuiet ? [entityId] : ENTITIES);
    if (debts > 0) this.count("bucket in debt");
    await compareAvailable(client, this.oracle, entityId, resource);
    if (!isQuiet && (this.#backend.loose !== true || this.stepNumber % 3 === 0))
      await compareChecked(client, this.oracle, this.focus);
    if (isQuiet || this.#backend.comparesUsage === "at the end") return;
    const window = WINDOWS[this.stepNumber % WINDOWS.length]!;
    await compareUsage(client, this.oracle, {
      entityId,
      resource,
      window,
      latestMs: this.#latestMs,
      aroundMs: client.now(),
    });
  }

  async #compareAllUsage(): Promise<void> {
    for (const entityId of ENTITIES) {
      for (const resource of RESOURCES) {
        for (const window of WINDOWS) {
          const windows = await compareUsage(this.#anyone(), this.oracle, {
            entityId,
            resource,
            window,
            latestMs: this.#latestMs,
          });
          if (windows > 1) this.count("usage in several windows");
        }
      }
    }
  }
}

const QUIET_STEPS: ReadonlySet<Step["kind"]> = new Set([
  "clock",
  "window end",
  "crash",
  "set limits",
  "delete limits",
  "create entity",
]);
const LEVELS = ["entity and resource", "entity", "resource", "system"] as const;

function nameOfError(error: unknown): string {
  if (error instanceof EntityExistsError) return "EntityExistsError";
  if (error instanceof EntityNotFoundError) return "EntityNotFoundError";
  if (error instanceof ValidationError) return "ValidationError";
  throw error;
}
