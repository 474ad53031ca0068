// Calls of one process on one bucket, and the writes that they share. The batches are those that
// the library's group commit makes of calls at these times, with a store that takes 10 ms.
import { ManualClock } from "zae-limiter/testing";
import { GroupCommit } from "../../packages/limiter/dist/repository/group-commit.js";
import { circle, line, picture, rect, text } from "./svg.mjs";

const WRITE_MS = 10;
const ARRIVALS_MS = [2, 4, 6, 7, 9, 11, 13, 14, 16, 18, 19, 21, 34];
const END_MS = 50;

const [WIDTH, HEIGHT] = [760, 300];
const [LEFT, RIGHT] = [110, 730];
const [CALLS, WRITES, AXIS] = [96, 160, 232];
const COLOURS = ["blue", "green", "amber", "violet"];

export async function drawSharedWrite() {
  const writes = await run();
  const shapes = [
    text(24, 36, "Calls that arrive during a write share the next one", "bold"),
    text(24, CALLS + 4, "calls", "soft"),
    text(24, WRITES + 23, "writes", "soft"),
    line(LEFT, AXIS, RIGHT, AXIS),
    [0, 10, 20, 30, 40, 50].map((ms) => [
      line(x(ms), AXIS, x(ms), AXIS + 5),
      text(x(ms), AXIS + 22, `${ms} ms`, "soft small middle"),
    ]),
    writes.map(({ startMs, arrivals }, index) => {
      const colour = COLOURS[index % COLOURS.length];
      const [from, width] = [x(startMs), x(startMs + WRITE_MS) - x(startMs)];
      return [
        arrivals.map((ms) => [
          line(x(ms), CALLS + 7, Math.max(x(ms), from + 8), WRITES, { stroke: `var(--${colour})` }),
          circle(x(ms), CALLS, 6, { fill: `var(--${colour})` }),
        ]),
        rect(from, WRITES, width, 36, {
          fill: `var(--${colour}-soft)`,
          stroke: `var(--${colour})`,
          rx: 6,
        }),
        text(from + width / 2, WRITES + 23, label(arrivals.length), "small middle"),
      ];
    }),
    text(
      24,
      HEIGHT - 14,
      `${ARRIVALS_MS.length} calls, ${writes.length} writes. The first is written at once, and nothing waits for a timer.`,
      "small",
    ),
  ];
  return picture(
    {
      width: WIDTH,
      height: HEIGHT,
      title: "Group commit: calls that arrive during a write share the next",
    },
    shapes,
  );
}

/** Each write: when it starts, and the arrival times of the calls in it. */
async function run() {
  const clock = new ManualClock(0);
  const group = new GroupCommit();
  const writes = [];
  const write = async (batch) => {
    writes.push({ startMs: clock.now(), arrivals: batch.map(({ work }) => work) });
    await clock.sleep(WRITE_MS);
    for (const member of batch) member.resolve("granted");
  };
  for (let ms = 0; ms < END_MS; ms += 1) {
    if (ARRIVALS_MS.includes(ms)) void group.submit(ms, write);
    await clock.advance(1);
  }
  return writes;
}

function label(calls) {
  return calls === 1 ? "1 call" : `${calls} calls`;
}

function x(ms) {
  return LEFT + (ms / END_MS) * (RIGHT - LEFT);
}
