// One call over time: estimate, work, settlement into debt, refusal, refill. The balances are those
// of a real bucket on a manual clock.
import { Limit, RateLimiter } from "zae-limiter";
import { MemoryRepository } from "zae-limiter/memory";
import { ManualClock } from "zae-limiter/testing";
import { amount, circle, line, number, path, picture, rect, text } from "./svg.mjs";

const [CAPACITY, ESTIMATE, REAL] = [1000, 400, 1500];
const [ACQUIRE_MS, SETTLE_MS, REFUSED_MS, END_MS, STEP_MS] = [1000, 3000, 4000, 18_000, 250];

const [WIDTH, HEIGHT] = [760, 490];
const CHART = { left: 70, right: 730, top: 70, bottom: 345 };
const NOTES_TOP = 398;
const [HIGHEST, LOWEST] = [1100, -450];

export async function oneCall() {
  const { points, takenTo, workedTo, settledTo, retryMs } = await run();
  const toPoint = (ms, tokens) => `${number(x(ms))} ${number(y(tokens))}`;
  const curve = `M${points.map(([ms, tokens]) => toPoint(ms, tokens)).join(" L")}`;
  const debt = points.filter(([ms, tokens]) => ms >= SETTLE_MS && tokens <= 0);
  const debtEndMs = debt.at(-1)[0];
  const shapes = [
    text(CHART.left, 32, "One call over time, and what it leaves of the limit", "bold"),
    [0, 500, CAPACITY].map((tokens) => [
      line(CHART.left, y(tokens), CHART.right, y(tokens), {
        "stroke-dasharray": tokens === 0 ? "none" : "3 4",
        stroke: tokens === 0 ? "var(--ink)" : "var(--line)",
      }),
      text(CHART.left - 8, y(tokens) + 4, amount(tokens), "soft small end"),
    ]),
    text(x(SETTLE_MS) + 12, y(CAPACITY) - 8, "capacity", "soft small"),
    text(CHART.right, y(0) + 18, "below zero: debt", "red small end"),
    rect(x(ACQUIRE_MS), y(HIGHEST), x(SETTLE_MS) - x(ACQUIRE_MS), y(LOWEST) - y(HIGHEST), {
      fill: "var(--box)",
    }),
    text((x(ACQUIRE_MS) + x(SETTLE_MS)) / 2, y(LOWEST) - 10, "the work", "soft small middle"),
    path(
      `M${toPoint(SETTLE_MS, 0)} L${debt.map(([ms, tokens]) => toPoint(ms, tokens)).join(" L")} L${toPoint(debtEndMs, 0)} Z`,
      { fill: "var(--red-soft)" },
    ),
    path(curve, { stroke: "var(--blue)", "stroke-width": 2.5, "stroke-linejoin": "round" }),
    marker(ACQUIRE_MS, takenTo, "1"),
    marker(SETTLE_MS, settledTo, "2"),
    marker(REFUSED_MS, settledTo + ((REFUSED_MS - SETTLE_MS) / 1000) * 100, "3"),
    marker(REFUSED_MS + retryMs, 0, "4"),
    marker(points.find(([ms, tokens]) => ms > SETTLE_MS && tokens === CAPACITY)[0], CAPACITY, "5"),
    notes([
      ["1", `acquire takes the estimate of ${amount(ESTIMATE)}`],
      [
        "2",
        `settle: it really cost ${amount(REAL)}, so ${amount(workedTo)} become ${amount(settledTo)}`,
      ],
      ["3", `in debt, every call is refused: retry in ${retryMs / 1000} s`],
      ["4", "refill has paid off the debt: calls are granted again"],
      ["5", "full again, and never more than that"],
    ]),
    [0, 3, 6, 9, 12, 15, 18].map((seconds) =>
      text(x(seconds * 1000), CHART.bottom + 22, `${seconds} s`, "soft small middle"),
    ),
    text(
      CHART.left,
      52,
      `Limit.perMinute("tpm", 6_000, { burst: ${amount(CAPACITY).replace(",", "_")} }): 100 tokens a second come back`,
      "soft small",
    ),
  ];
  return picture(
    {
      width: WIDTH,
      height: HEIGHT,
      title: "One call over time: estimate, settlement, debt, refill",
    },
    shapes,
  );
}

/** Makes the call, and reads the balance all the while. */
async function run() {
  const clock = new ManualClock(0);
  const repository = new MemoryRepository({ clock });
  await repository.setSystemDefaults([
    Limit.perMinute("rpm", 60),
    Limit.perMinute("tpm", 6000, { burst: CAPACITY }),
  ]);
  const limiter = new RateLimiter({ repository });
  const request = { entityId: "key", resource: "model", consume: { rpm: 1, tpm: ESTIMATE } };
  const balance = async () => (await limiter.available("key", "model")).tpm;
  const points = [];
  const seen = {};
  let lease;
  for (let ms = 0; ms <= END_MS; ms += STEP_MS) {
    points.push([ms, await balance()]);
    if (ms === ACQUIRE_MS) {
      lease = await limiter.acquire(request);
      points.push([ms, (seen.takenTo = await balance())]);
    }
    if (ms === SETTLE_MS) {
      seen.workedTo = await balance();
      lease.settle({ tpm: REAL });
      await lease.commit();
      points.push([ms, (seen.settledTo = await balance())]);
    }
    if (ms === REFUSED_MS) {
      const verdict = await limiter.tryAcquire({ ...request, consume: { rpm: 1 } });
      if (verdict.granted) throw new Error("The call should have been refused.");
      seen.retryMs = verdict.refusal.retryAfterSeconds * 1000;
    }
    await clock.advance(STEP_MS);
  }
  return { points, ...seen };
}

function marker(ms, tokens, label) {
  return [
    circle(x(ms), y(tokens), 10, { fill: "var(--blue)" }),
    text(x(ms), y(tokens) + 4.5, label, "small bold middle paper"),
  ];
}

function notes(lines) {
  return lines.map(([label, note], index) => [
    text(CHART.left, NOTES_TOP + index * 20, label, "small bold blue"),
    text(CHART.left + 18, NOTES_TOP + index * 20, note, "small"),
  ]);
}

function x(ms) {
  return CHART.left + (ms / END_MS) * (CHART.right - CHART.left);
}

function y(tokens) {
  return CHART.top + ((HIGHEST - tokens) / (HIGHEST - LOWEST)) * (CHART.bottom - CHART.top);
}
