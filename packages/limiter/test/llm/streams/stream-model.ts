import { IDLE_MS } from "./setting.ts";

/** The chunks: a token of text, a withheld one, and one that completes the answer. */
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

/** A possible state of a stream. */
export interface State {
  readonly queue: readonly (keyof typeof SENT)[];
  /** The chunk that has left the provider's stream and was not read yet. */
  readonly underWay: keyof typeof SENT | undefined;
  readonly upstream: "open" | "ended" | "failed";
  readonly isProviderStopped: boolean;
  /** The result of each read; undefined while it is pending. */
  readonly reads: readonly (string | undefined)[];
  readonly tokens: number;
  readonly isComplete: boolean;
  readonly end: string | undefined;
  /** The result of reads once the call is settled, after the end of the stream. */
  readonly over: string | undefined;
  /** Whether the reader has cancelled. It gets nothing else, and waits for nothing. */
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
  isProviderStopped: false,
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

/** Computes the states that actions may lead to. Each action may precede the effects of another. */
export function after(state: State, actions: readonly Action[]): readonly State[] {
  let states: readonly State[] = [state];
  for (const action of actions)
    states = unique(states.flatMap((each) => following(applyAction(each, action))));
  return states.map((each) => following(each).at(-1)!);
}

function applyAction(state: State, action: Action): State {
  const isOpen = state.upstream === "open" && !state.isProviderStopped;
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
      return isOpen || (hasMore(state) && !state.isProviderStopped)
        ? { ...state, upstream: "failed", queue: [] }
        : state;
    case "cancel":
      if (state.over !== undefined && state.isSettled) return state;
      return { ...over(state, "abandoned", "done", "stop"), isCancelled: true };
    case "abort":
      return state.end === undefined ? over(state, "abandoned", "aborted", "stop") : state;
    case "hold":
      return { ...state, isHeld: true };
    case "release":
      return { ...state, isHeld: false };
    default:
      return applyRest(state, action === "rest" ? IDLE_MS : IDLE_MS / 2);
  }
}

function applyRest(state: State, ms: number): State {
  const idleMs = state.reads.includes(undefined) ? 0 : state.idleMs + ms;
  return idleMs >= IDLE_MS && state.end === undefined
    ? over(state, "abandoned", "idle", "stop")
    : { ...state, idleMs };
}

/** Lists the states that follow by themselves. In the last one, nothing more happens. */
function following(from: State): readonly State[] {
  const states: State[] = [];
  for (let state: State | undefined = from; state !== undefined; state = step(state))
    states.push(state);
  return states;
}

function step(state: State): State | undefined {
  const isWaitedFor = state.reads.includes(undefined);
  if (isWaitedFor && state.isCancelled) return endReads(state);
  if (isWaitedFor && state.over === undefined) {
    if (state.underWay !== undefined) return passOn(state, state.underWay);
    const [underWay, ...queue] = state.queue;
    if (underWay !== undefined) return { ...state, underWay, queue };
    if (state.upstream === "ended") return over(state, "cut", "done");
    if (state.upstream === "failed") return over(state, "cut", "failed");
  }
  if (state.end !== undefined && !state.isSettled && !state.isHeld)
    return { ...state, isSettled: true };
  return isWaitedFor && state.isSettled && state.over !== undefined ? endReads(state) : undefined;
}

function passOn(state: State, next: keyof typeof SENT): State {
  const isComplete = state.isComplete || next === "last";
  return {
    ...state,
    underWay: undefined,
    isComplete,
    tokens: state.tokens + (next !== "last" && state.end === undefined ? 1 : 0),
    end: state.end ?? (isComplete ? "complete" : undefined),
    reads: next === "withheld" ? state.reads : resolveReads(state.reads, SENT[next], 1),
    idleMs: 0,
  };
}

function endReads(state: State): State {
  return { ...state, reads: resolveReads(state.reads, state.over!, Infinity) };
}

function over(state: State, end: string, outcome: string, provider?: "stop"): State {
  const isProviderStopped = state.isProviderStopped || (provider !== undefined && hasMore(state));
  // The first end is the one that is reported, except that a reader that cancels knows it.
  const isFirst = state.over === undefined || outcome === "done";
  return {
    ...state,
    isProviderStopped,
    end: state.end ?? end,
    over: isFirst ? outcome : state.over,
  };
}

/** A stream that has ended can fail or be stopped until its last chunk was read. */
function hasMore({ upstream, queue }: State): boolean {
  return upstream === "open" || queue.length > 0;
}

function resolveReads(
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
export function getSeen({ reads, end, tokens, isProviderStopped, isSettled }: State): string {
  return JSON.stringify({
    reads: reads.map((outcome) => outcome ?? "pending"),
    settled: !isSettled ? [] : [[end, tokens]],
    isProviderStopped,
    isWatched: end === undefined,
  });
}

export function unique(states: readonly State[]): readonly State[] {
  return [...new Map(states.map((state) => [JSON.stringify(state), state])).values()];
}
