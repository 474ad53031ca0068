/*
 * Random histories of one stream, on real streams and a real limiter, beside a model. An action may
 * come before or after the effects of the one before it, so the model is a set of possible states.
 * Those that contradict the observations are dropped, and none left is a failure. `SEED` and
 * `SEEDS` replay.
 */
import { getEventListeners } from "node:events";
import { simpleEstimator } from "zae-limiter/llm";
import { seededRandom } from "zae-limiter/testing";
import { describe, expect, it } from "vitest";
import { heldAnswer } from "../../support/held-answer.ts";
import { CoverageCounts } from "../../support/seeded/coverage-counts.ts";
import { between, pick } from "../../support/seeded/random-choice.ts";
import { getEach, seedsFromEnvironment } from "../../support/seeded/seeds.ts";
import {
  BACKENDS,
  bytes,
  HeldStream,
  IDLE_MS,
  nextTurns,
  Setting,
  type Backend,
} from "./setting.ts";
import {
  ACTIONS,
  after,
  BEGIN,
  SENT,
  getSeen,
  unique,
  type Action,
  type State,
} from "./stream-model.ts";

/** Most of a history is reading and sending: ends are rare, so that they come at every point. */
const WEIGHTED: readonly Action[] = [
  ...ACTIONS,
  ...Array.from({ length: 8 }, () => "read" as const),
  ...Array.from({ length: 6 }, () => "text" as const),
  "withheld",
];

/** One stream, and what was seen of it. */
class Stream {
  readonly #setting: Setting;
  readonly #upstream = new HeldStream();
  readonly #abort = new AbortController();
  readonly #reads: string[] = [];
  #reader!: ReadableStreamDefaultReader<Uint8Array>;
  #held = heldAnswer<void>();

  private constructor(setting: Setting) {
    this.#setting = setting;
  }

  static async create(backend: Backend): Promise<Stream> {
    // More than can be used is reserved, so that every settlement is a write, which can be held.
    const estimator = simpleEstimator({ output: 100_000 });
    const setting = await Setting.create(backend, { estimator, budget: 1_000_000 });
    const stream = new Stream(setting);
    const watched = await setting.watch(stream.#upstream.readable, stream.#abort.signal);
    stream.#reader = watched.getReader();
    return stream;
  }

  act(action: Action): Promise<void> | undefined {
    const { gates, clock } = this.#setting;
    if (action === "read") this.#read();
    else if (action === "cancel") this.#reader.cancel().catch(() => {});
    else if (action === "abort") this.#abort.abort(new Error("aborted"));
    else if (action === "hold") {
      if (!gates.has("settle")) this.#held = heldAnswer();
      gates.set("settle", this.#held.promise);
    } else if (action === "release") {
      this.#held.resolve();
      gates.delete("settle");
    } else if (action === "rest") return clock.advance(IDLE_MS);
    else if (action === "half a rest") return clock.advance(IDLE_MS / 2);
    else this.#send(action);
    return undefined;
  }

  get seen(): string {
    return JSON.stringify({
      reads: this.#reads,
      settled: this.#setting.ends,
      isProviderStopped: this.#upstream.cancels.length > 0,
      isWatched:
        getEventListeners(this.#abort.signal, "abort").length + this.#setting.clock.sleeping > 0,
    });
  }

  get writes(): readonly string[] {
    return this.#setting.settlements;
  }

  #read(): void {
    const index = this.#reads.push("pending") - 1;
    this.#reader.read().then(
      ({ done, value }) => (this.#reads[index] = done ? "done" : Buffer.from(value).toString()),
      (error: { readonly code?: string; readonly message: string }) =>
        (this.#reads[index] = error.code === "ERR_LIMITER_STREAM_IDLE" ? "idle" : error.message),
    );
  }

  /** Sends to the stream. The controller of a stream that is over throws. */
  #send(action: keyof typeof SENT | "end" | "fail"): void {
    try {
      if (action === "end") this.#upstream.end();
      else if (action === "fail") this.#upstream.fail(new Error("failed"));
      else this.#upstream.send(bytes(SENT[action]));
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
    }
  }
}

const coverage = new CoverageCounts(["complete", "abandoned", "cut", "idle", "held", "races"]);

/** Follows a random history. Throws with the history if no state explains the observations. */
async function follow(backend: Backend, seed: number): Promise<void> {
  const random = seededRandom(seed);
  const stream = await Stream.create(backend);
  const history: (readonly Action[])[] = [];
  let states: readonly State[] = [BEGIN];
  const turn = async (actions: readonly Action[]): Promise<void> => {
    history.push(actions);
    for (const action of actions) {
      const resting = stream.act(action);
      if (resting !== undefined) await resting;
      // Anywhere between two steps of what follows.
      for (let jobs = between(random, 0, 12); jobs > 0; jobs -= 1) await undefined;
    }
    await nextTurns(2);
    const possible = unique(states.flatMap((state) => after(state, actions)));
    const { seen } = stream;
    states = possible.filter((state) => getSeen(state) === seen);
    if (states.length > 0) return;
    const story = history.map((each) => each.join(" + ")).join(", ");
    const wanted = possible.map((state) => `possible: ${getSeen(state)}`);
    throw new Error([`seed ${seed}: ${story}`, `seen:     ${seen}`, ...wanted].join("\n"));
  };
  for (let turns = between(random, 3, 25); turns > 0; turns -= 1) {
    const count = random() < 0.6 ? 1 : between(random, 2, 3);
    const actions = Array.from({ length: count }, () => pick(random, WEIGHTED));
    // Time takes its own turns, and holding and releasing at once shows nothing.
    const isAlone = actions.some((action) => /rest|hold|release/.test(action));
    await turn(isAlone ? actions.slice(0, 1) : actions);
    if (count > 1 && !isAlone) coverage.count("races");
  }
  if (states.some(({ isSettled, over }) => !isSettled && over !== undefined))
    coverage.count("held");
  await turn(["release"]);
  await turn(["cancel"]);
  await turn(["rest"]);
  expect(stream.writes).toEqual(["settle"]);
  coverage.count(states[0]!.end as "complete");
  if (states[0]!.over === "idle") coverage.count("idle");
}

describe.each(BACKENDS)("random histories of a stream on %s", (backend) => {
  it("settle it once, and end its reader and its provider as they must", async () => {
    const usual = backend === "memory" ? 200 : 10;
    for (const seed of getEach(seedsFromEnvironment({ usual }))) await follow(backend, seed);
    if (process.env["SEEDS"] === undefined) expect(coverage.missing).toEqual([]);
  });
});
