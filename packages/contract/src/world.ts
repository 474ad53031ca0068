import { RateLimiter, type Repository } from "zae-limiter";
import type { ManualClock } from "zae-limiter/testing";

/** The surroundings of one test: a fresh repository on its own clock, and a limiter. */
export interface World {
  readonly clock: ManualClock;
  readonly repository: Repository;
  readonly limiter: RateLimiter;
  /**
   * Lets time pass, and waits until all operations in progress, and those that the time starts,
   * have finished, even if a backend needs real I/O.
   */
  pass(ms: number): Promise<void>;
}

/** Defines one test. */
type Test = (name: string, body: (world: World) => Promise<void>) => void;

/** Defines the tests of one topic. */
export type Topic = (test: Test) => void;

/**
 * How long `pass` waits for operations in progress, in real time: far longer than any response
 * takes, and much shorter than the time-out of a test.
 */
const LONGEST_RESPONSE_MS = 2000;

/** Builds the world of one test around an open repository. */
export function openWorld(opened: Repository, clock: ManualClock): World {
  const inProgress = new Set<Promise<unknown>>();
  const repository = watchPromises(opened, inProgress);
  const pass = async (ms: number): Promise<void> => {
    await quiet(inProgress);
    await clock.advance(ms);
    await quiet(inProgress);
  };
  return { clock, repository, limiter: new RateLimiter({ repository }), pass };
}

/** Wraps the repository and keeps every promise that has not settled yet in `inProgress`. */
function watchPromises(repository: Repository, inProgress: Set<Promise<unknown>>): Repository {
  return new Proxy(repository, {
    get(target, property) {
      const member: unknown = Reflect.get(target, property, target);
      if (typeof member !== "function") return member;
      return (...values: unknown[]): unknown => {
        const answer: unknown = Reflect.apply(member, target, values);
        if (answer instanceof Promise) watch(answer, inProgress);
        return answer;
      };
    },
  });
}

function watch(answer: Promise<unknown>, inProgress: Set<Promise<unknown>>): void {
  inProgress.add(answer);
  const done = (): boolean => inProgress.delete(answer);
  answer.then(done, done);
}

/**
 * Waits until nothing is in progress for a few turns, because one response may cause the next
 * request.
 */
async function quiet(inProgress: ReadonlySet<Promise<unknown>>): Promise<void> {
  const until = performance.now() + LONGEST_RESPONSE_MS;
  for (let turns = 0; turns < 3; turns += 1) {
    if (inProgress.size > 0 && performance.now() < until) turns = -1;
    await new Promise((resolve) => setImmediate(resolve));
  }
}
