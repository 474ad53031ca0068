import { RateLimiter } from "../../limiter/rate-limiter.ts";
import type { Repository } from "../../repository/repository.ts";
import type { ManualClock } from "../fakes/manual-clock.ts";

/**
 * What one test of the contract works in: a fresh repository on its own clock, and a limiter on it.
 */
export interface World {
  readonly clock: ManualClock;
  readonly repository: Repository;
  readonly limiter: RateLimiter;
  /**
   * Lets time pass, and what was under way before and what it wakes come to its end, also where a
   * backend needs real I/O for it.
   */
  pass(ms: number): Promise<void>;
}

/** Defines one test. */
type Test = (name: string, body: (world: World) => Promise<void>) => void;

/** Defines the tests of one topic. */
export type Topic = (test: Test) => void;

/**
 * How long `pass` waits for operations that are under way, in real time: far beyond any answer,
 * short beside a test's time-out.
 */
const LONGEST_ANSWER_MS = 2000;

/** Builds the world of one test around an open repository. */
export function worldOf(opened: Repository, clock: ManualClock): World {
  const underWay = new Set<Promise<unknown>>();
  const repository = watched(opened, underWay);
  const pass = async (ms: number): Promise<void> => {
    await quiet(underWay);
    await clock.advance(ms);
    await quiet(underWay);
  };
  return { clock, repository, limiter: new RateLimiter({ repository }), pass };
}

/** The repository, with every answer that is still on its way in `underWay`. */
function watched(repository: Repository, underWay: Set<Promise<unknown>>): Repository {
  return new Proxy(repository, {
    get(target, property) {
      const member: unknown = Reflect.get(target, property, target);
      if (typeof member !== "function") return member;
      return (...values: unknown[]): unknown => {
        const answer: unknown = Reflect.apply(member, target, values);
        if (answer instanceof Promise) watch(answer, underWay);
        return answer;
      };
    },
  });
}

function watch(answer: Promise<unknown>, underWay: Set<Promise<unknown>>): void {
  underWay.add(answer);
  const done = (): boolean => underWay.delete(answer);
  answer.then(done, done);
}

/**
 * Waits until nothing is under way, with a few turns between: an answer may lead to the next
 * question.
 */
async function quiet(underWay: ReadonlySet<Promise<unknown>>): Promise<void> {
  const until = performance.now() + LONGEST_ANSWER_MS;
  for (let turns = 0; turns < 3; turns += 1) {
    if (underWay.size > 0 && performance.now() < until) turns = -1;
    await new Promise((resolve) => setImmediate(resolve));
  }
}
