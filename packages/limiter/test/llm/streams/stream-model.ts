import { IDLE_MS } from "./setting.ts";

/** What is sent: a token of text, one that is withheld, and what completes the answer. */
export const SENT = { text: "word", withheld: "#text", last: "." } as const;

export const ACTIONS = [
  "read",
  "text",
  "withheld",
  "last",
  "end",
  "fail",
  "cancel",
  "abort",
  "hold",
  "release",
  "rest",
  "half a rest",
] as const;

export type Action = (typeof ACTIONS)[number];

/** What must be so. */
export interface State {
  readonly queue: readonly (keyof typeof SENT)[];
  /** The chunk that has left the provider's stream and was not looked at yet. */
  readonly underWay: keyof typeof SENT | undefined;
  readonly upstream: "open" | "ended" | "failed";
  readonly isToldToStop: boolean;
  /** What each read became; undefined while it is pending. */
  readonly reads: readonly (string | undefined)[];
  readonly tokens: number;
  readonly isComplete: boolean;
  readonly end: string | undefined;
  /** What reads become once the call is settled: the stream is over. */
  readonly over: string | undefined;
  /** Whether the reader has cancelled: it is told nothing else, and waits for nothing. */
  readonly isCancelled: boolean;
  /** Whether a settlement that begins now does not end. */
  readonly isHeld: boolean;
  readonly isSettled: boolean;
  readonly idleMs: number;
}

export const BEGIN: State = {
  queue: [],
  underWay: undefined,
  upstream: "open",
  isToldToStop: false,
  reads: [],
  tokens: 0,
  isComplete: false,
  end: undefined,
  over: undefined,
  isCancelled: false,
  isHeld: false,
  isSettled: false,
  idleMs: 0,
};

/** The states that some actions may lead to. Each may come before what follows from another. */
export function after(state: State, actions: readonly Action[]): readonly State[] {
  let states: readonly State[] = [state];
  for (const action of actions)
    states = unique(states.flatMap((each) => following(acted(each, action))));
  return states.map((each) => following(each).at(-1)!);
}

function acted(state: State, action: Action): State {
  const isOpen = state.upstream === "open" && !state.isToldToStop;
  switch (action) {
    case "read":
      return { ...state, reads: [...state.reads, undefined] };
    case "text":
    case "withheld":
    case "last":
      return isOpen ? { ...state, queue: [...state.queue, action] } : state;
    case "end":
      return isOpen ? { ...state, upstream: "ended" } : state;
    case "fail":
      return isOpen || (hasMore(state) && !state.isToldToStop)
        ? { ...state, upstream: "failed", queue: [] }
        : state;
    case "cancel":
      if (state.over !== undefined && state.isSettled) return state;
      return { ...over(state, "abandoned", "done", "told to stop"), isCancelled: true };
    case "abort":
      return state.end === undefined ? over(state, "abandoned", "aborted", "told to stop") : state;
    case "hold":
      return { ...state, isHeld: true };
    case "release":
      return { ...state, isHeld: false };
    default:
      return rested(state, action === "rest" ? IDLE_MS : IDLE_MS / 2);
  }
}

function rested(state: State, ms: number): State {
  const idleMs = state.reads.includes(undefined) ? 0 : state.idleMs + ms;
  return idleMs >= IDLE_MS && state.end === undefined
    ? over(state, "abandoned", "idle", "told to stop")
    : { ...state, idleMs };
}

/** What follows from a state by itself, one step after the other; the last is where it rests. */
function following(from: State): readonly State[] {
  const states: State[] = [];
  for (let state: State | undefined = from; state !== undefined; state = step(state))
    states.push(state);
  return states;
}

function step(state: State): State | undefined {
  const isWaitedFor = state.reads.includes(undefined);
  if (isWaitedFor && state.isCancelled) return toldTheEnd(state);
  if (isWaitedFor && state.over === undefined) {
    if (state.underWay !== undefined) return passedOn(state, state.underWay);
    const [underWay, ...queue] = state.queue;
    if (underWay !== undefined) return { ...state, underWay, queue };
    if (state.upstream === "ended") return over(state, "cut", "done");
    if (state.upstream === "failed") return over(state, "cut", "failed");
  }
  if (state.end !== undefined && !state.isSettled && !state.isHeld)
    return { ...state, isSettled: true };
  return isWaitedFor && state.isSettled && state.over !== undefined ? toldTheEnd(state) : undefined;
}

function passedOn(state: State, next: keyof typeof SENT): State {
  const isComplete = state.isComplete || next === "last";
  return {
    ...state,
    underWay: undefined,
    isComplete,
    tokens: state.tokens + (next !== "last" && state.end === undefined ? 1 : 0),
    end: state.end ?? (isComplete ? "complete" : undefined),
    reads: next === "withheld" ? state.reads : tell(state.reads, SENT[next], 1),
    idleMs: 0,
  };
}

function toldTheEnd(state: State): State {
  return { ...state, reads: tell(state.reads, state.over!, Infinity) };
}

function over(state: State, end: string, outcome: string, provider?: "told to stop"): State {
  const isToldToStop = state.isToldToStop || (provider !== undefined && hasMore(state));
  // An end is told as the first one says, except that a reader that cancels knows it.
  const isFirst = state.over === undefined || outcome === "done";
  return {
    ...state,
    isToldToStop,
    end: state.end ?? end,
    over: isFirst ? outcome : state.over,
  };
}

/** A stream that has ended can fail or be told to stop until its last chunk was read. */
function hasMore({ upstream, queue }: State): boolean {
  return upstream === "open" || queue.length > 0;
}

function tell(
  reads: State["reads"],
  outcome: string,
  most: number,
): readonly (string | undefined)[] {
  let left = most;
  return reads.map((before) => {
    if (before !== undefined || left === 0) return before;
    left -= 1;
    return outcome;
  });
}

/** What can be seen of a state. */
export function getSeen({ reads, end, tokens, isToldToStop, isSettled }: State): string {
  return JSON.stringify({
    reads: reads.map((outcome) => outcome ?? "pending"),
    settled: !isSettled ? [] : [[end, tokens]],
    isToldToStop,
    isWatched: end === undefined,
  });
}

export function unique(states: readonly State[]): readonly State[] {
  return [...new Map(states.map((state) => [JSON.stringify(state), state])).values()];
}
