// Twenty a day, as a bucket and as a quota: what is left while a client asks every half hour, and
// which calls are granted. Both are decided by the library.
import { Limit, RateLimiter } from "zae-limiter";
import { MemoryRepository } from "zae-limiter/memory";
import { ManualClock } from "zae-limiter/testing";
import { line, number, path, picture, text } from "./svg.mjs";

const [HOUR_MS, ASKS_FROM_HOUR, HOURS] = [3_600_000, 6, 48];
const LIMITS = {
  bucket: Limit.perDay("images", 20),
  quota: Limit.quota("images", 20, { every: "day", zone: "UTC" }),
};
const NOTES = {
  bucket: "one comes back every 72 minutes",
  quota: "all 20 are there again at midnight",
};

const [WIDTH, HEIGHT] = [760, 412];
const [LEFT, RIGHT, TOP, PANEL, CHART] = [56, 736, 84, 172, 96];

export async function drawDayLimits() {
  const panels = Object.keys(LIMITS);
  const runs = await run();
  const shapes = [
    text(20, 34, "20 a day: bucket against quota", "bold"),
    text(
      20,
      56,
      "A client asks for one image every half hour, from 6:00 on the first day.",
      "soft small",
    ),
    panels.map((kind, index) => drawPanel(kind, runs[kind], TOP + index * PANEL)),
  ];
  const title = "20 a day: a bucket grants more on its first day, a quota 20 on each";
  return picture({ width: WIDTH, height: HEIGHT, title }, shapes);
}

/** Asks both limits, and reads their balances all the while. */
async function run() {
  const clock = new ManualClock(Date.UTC(2026, 0, 5));
  const repository = new MemoryRepository({ clock });
  const limiter = new RateLimiter({ repository });
  const runs = {};
  for (const [resource, limit] of Object.entries(LIMITS)) {
    await repository.setResourceDefaults(resource, [limit]);
    runs[resource] = { balances: [], asks: [] };
  }
  for (let hour = 0; hour <= HOURS; hour += 0.5) {
    for (const [resource, { balances, asks }] of Object.entries(runs)) {
      const read = async () => (await limiter.available("client", resource)).images;
      balances.push([hour, await read()]);
      if (hour < ASKS_FROM_HOUR || hour === HOURS) continue;
      const call = { entityId: "client", resource, consume: { images: 1 } };
      const { granted, lease } = await limiter.tryAcquire(call);
      await lease?.commit();
      asks.push({ hour, granted });
      balances.push([hour, await read()]);
    }
    await clock.advance(HOUR_MS / 2);
  }
  return runs;
}

function drawPanel(kind, { balances, asks }, top) {
  const y = (tokens) => top + 14 + (1 - tokens / 20) * CHART;
  const bottom = y(0);
  const points = balances.map(([hour, tokens]) => `${number(x(hour))} ${number(y(tokens))}`);
  const days = [0, 24].map((from) => {
    const granted = asks.filter((ask) => ask.granted && ask.hour >= from && ask.hour < from + 24);
    const middle = x(from + 12);
    return text(middle, top + 4, `${granted.length} granted on this day`, "small bold middle");
  });
  return [
    text(LEFT, top - 10, Limit.format(LIMITS[kind]), "small mono"),
    text(RIGHT, top - 10, NOTES[kind], "soft small end"),
    [0, 24, 48].map((hour) => line(x(hour), top - 4, x(hour), bottom + 12)),
    [0, 20].map((tokens) => [
      line(LEFT, y(tokens), RIGHT, y(tokens), { "stroke-dasharray": "3 4" }),
      text(LEFT - 8, y(tokens) + 4, tokens, "soft small end"),
    ]),
    days,
    path(`M${points.join(" L")}`, { stroke: "var(--blue)", "stroke-width": 2.5 }),
    [true, false].map((isGranted) => {
      const ticks = asks
        .filter(({ granted }) => granted === isGranted)
        .map(({ hour }) => `M${number(x(hour))} ${number(bottom + 5)} v8`);
      const stroke = isGranted ? "var(--green)" : "var(--red-soft)";
      return path(ticks.join(" "), { stroke, "stroke-width": 4 });
    }),
    [0, 12, 24, 36].map((hour) => text(x(hour) + 2, bottom + 28, `${hour % 24}:00`, "soft small")),
    text(RIGHT, bottom + 28, "green: granted; red: refused", "soft small end"),
  ];
}

function x(hour) {
  return LEFT + (hour / HOURS) * (RIGHT - LEFT);
}
