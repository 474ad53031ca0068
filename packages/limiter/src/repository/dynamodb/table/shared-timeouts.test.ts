import { describe, expect, it, vi } from "vitest";
import { SharedTimeouts } from "./connection.ts";
import { startTimeout } from "../../system-clock.ts";

const TIMEOUT_MS = 3200;
const SHARE_MS = TIMEOUT_MS / 32;

/** Time-outs on a clock that the test moves. */
function onHand(): {
  readonly timeouts: SharedTimeouts;
  readonly started: Started[];
  nowMs: number;
} {
  const started: Started[] = [];
  const state = { nowMs: 1000, started };
  const start = (ms: number): Started => {
    const timeout = {
      ms,
      atMs: state.nowMs,
      signal: new AbortController().signal,
      hold: vi.fn<() => void>(),
      release: vi.fn<() => void>(),
    };
    started.push(timeout);
    return timeout;
  };
  return Object.assign(state, {
    timeouts: new SharedTimeouts(TIMEOUT_MS, { nowMs: () => state.nowMs, start }),
  });
}

interface Started {
  readonly ms: number;
  readonly atMs: number;
  readonly signal: AbortSignal;
  readonly hold: ReturnType<typeof vi.fn<() => void>>;
  readonly release: ReturnType<typeof vi.fn<() => void>>;
}

describe("time-outs that are shared", () => {
  it("abort all work after its time, or a 32nd of it earlier, and never later", () => {
    const hand = onHand();
    for (let count = 0; count < 1000; count += 1) {
      const { signal } = hand.timeouts.begin();
      const { atMs, ms } = hand.started.find((timeout) => timeout.signal === signal)!;
      const left = atMs + ms - hand.nowMs;
      expect(left).toBeLessThanOrEqual(TIMEOUT_MS);
      expect(left).toBeGreaterThan(TIMEOUT_MS - SHARE_MS);
      hand.nowMs += SHARE_MS / 8;
    }
    expect(hand.started).toHaveLength(1000 / 8);
  });

  it("keep the process alive exactly while there is work", () => {
    const hand = onHand();
    const [one, other] = [hand.timeouts.begin(), hand.timeouts.begin()];
    const [{ hold, release }] = hand.started as [Started];
    expect([hold, release].map(({ mock }) => mock.calls.length)).toEqual([1, 1]);
    one.end();
    expect(release).toHaveBeenCalledTimes(1);
    other.end();
    expect([hold, release].map(({ mock }) => mock.calls.length)).toEqual([1, 2]);
    hand.timeouts.begin();
    expect([hold, release].map(({ mock }) => mock.calls.length)).toEqual([2, 2]);
  });

  it("accept many listeners without a warning", () => {
    const warned = vi.spyOn(process, "emitWarning");
    const { timeouts } = onHand();
    for (let count = 0; count < 64; count += 1)
      timeouts.begin().signal.addEventListener("abort", () => {});
    expect(warned).not.toHaveBeenCalled();
  });
});

it("a time-out lets the process end once it is released, until it is held again", () => {
  const before = alive();
  const timeout = startTimeout(60_000);
  expect(alive()).toBe(before + 1);
  timeout.release();
  expect(alive()).toBe(before);
  timeout.hold();
  expect(alive()).toBe(before + 1);
  timeout.release();
});

/** How many timers keep the process alive. */
function alive(): number {
  return process.getActiveResourcesInfo().filter((resource) => resource === "Timeout").length;
}
