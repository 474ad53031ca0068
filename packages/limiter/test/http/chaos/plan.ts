/*
 * What the clients of one round do, and what the handlers do with their requests: a pure function
 * of the seed.
 */
import { seededRandom } from "zae-limiter/testing";
import { between, pick } from "../../support/seeded/random-choice.ts";

/** Handlers that end their response: a client that reads on gets all of it. */
const WHOLE = ["answers", "answers late", "streams", "floods", "writes", "throws"] as const;

/** Handlers after which no client gets a whole response. */
const CUT = [
  "destroys",
  "destroys and answers",
  "destroys late",
  "destroys midway",
  "resets",
] as const;

/** Handlers that servers treat differently. */
const BROKEN = ["stream fails", "throws midway", "hangs"] as const;

export type Behavior = (typeof WHOLE)[number] | (typeof CUT)[number] | (typeof BROKEN)[number];

export type Protocol = "http1" | "http2";

/** One request, and what its handler does. */
export interface RequestPlan {
  readonly id: number;
  readonly behavior: Behavior;
  readonly method: "GET" | "HEAD" | "POST";
  /** Part of a body is never followed by the rest. */
  readonly body: "none" | "whole" | "part";
  /** "rich" is never short. "poor" holds little, gets everything back, and its requests wait. */
  readonly entityId: "rich" | "poor";
  readonly cost: number;
  /** How long the handler takes for each delayed step. */
  readonly stepMs: number;
  /** With HTTP/2: when the client cancels the stream. */
  readonly cancelledAfterMs: number | undefined;
}

/** One connection: its requests are sent at once, or in two parts. */
export interface ConnectionPlan {
  readonly protocol: Protocol;
  readonly requests: readonly RequestPlan[];
  readonly isSplit: boolean;
  readonly isFollowedByGarbage: boolean;
  readonly reads: "all" | "slowly" | "nothing";
  /** A calm client reads every response until the server has closed the connection. */
  readonly ends: "calmly" | "half" | "destroyed" | "reset";
  readonly endsAfterMs: number;
}

const CONNECTIONS = 10;
const MOST_REQUESTS = 8;
const LONGEST_MS = 6;

/** A third of all connections is calm, so that completed responses are known to be completed. */
const CALM = 1 / 3;

export function isCut(behavior: Behavior): boolean {
  return (CUT as readonly Behavior[]).includes(behavior);
}

export function planRound(seed: number, protocols: readonly Protocol[]): ConnectionPlan[] {
  const random = seededRandom(seed);
  let id = 0;
  return Array.from({ length: CONNECTIONS }, () => {
    const protocol = pick(random, protocols);
    const isCalm = random() < CALM;
    const requests = Array.from({ length: between(random, 1, MOST_REQUESTS) }, () =>
      planRequest(random, { id: id++, isCalm }),
    );
    return {
      protocol,
      requests,
      isSplit: random() < 0.3,
      isFollowedByGarbage: !isCalm && random() < 0.1,
      reads: pick(random, isCalm ? ["all", "slowly"] : ["all", "slowly", "nothing"]),
      ends: isCalm ? "calmly" : pick(random, ["half", "destroyed", "reset"]),
      endsAfterMs: between(random, 0, LONGEST_MS),
    };
  });
}

function planRequest(
  random: () => number,
  { id, isCalm }: { readonly id: number; readonly isCalm: boolean },
): RequestPlan {
  const method = pick(random, ["GET", "GET", "GET", "HEAD", "POST"] as const);
  const isPart = !isCalm && random() < 0.2;
  return {
    id,
    behavior: pick<Behavior>(random, isCalm ? WHOLE : [...WHOLE, ...CUT, ...BROKEN]),
    method,
    body: method !== "POST" ? "none" : isPart ? "part" : "whole",
    entityId: random() < 0.3 ? "poor" : "rich",
    cost: between(random, 1, 3),
    stepMs: between(random, 0, LONGEST_MS / 2),
    cancelledAfterMs: isCalm || random() < 0.7 ? undefined : between(random, 0, LONGEST_MS),
  };
}
