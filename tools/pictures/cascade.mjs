// Two keys and their project: what is left of each after the calls that filled the project's limit.
// The balances come from a refusal of the library.
import { Limit, RateLimiter } from "zae-limiter";
import { MemoryRepository } from "zae-limiter/memory";
import { ManualClock } from "zae-limiter/testing";
import { arrow, picture, rect, text } from "./svg.mjs";

const [WIDTH, HEIGHT] = [760, 340];
const BOX = { width: 240, height: 92 };
const LEFT = 40;
const RIGHT = WIDTH - LEFT - BOX.width;
const [TOP, BOTTOM] = [70, 200];

export async function cascade() {
  const { taken, statuses, refusal } = await run();
  const findStatus = (entityId) => statuses.find((status) => status.entityId === entityId);
  const middle = (TOP + BOTTOM) / 2;
  const shapes = [
    text(LEFT, 36, "Every call takes from its key and from the project, or from neither", "bold"),
    box(LEFT, TOP, "key-a", findStatus("key-a"), `took ${taken["key-a"]}`),
    box(LEFT, BOTTOM, "key-b", findStatus("key-b"), `took ${taken["key-b"]}, and asks for 1 more`),
    box(RIGHT, middle, "project", findStatus("project"), "shared by both keys"),
    arrow(LEFT + BOX.width, TOP + 46, RIGHT - 6, middle + 34),
    arrow(LEFT + BOX.width, BOTTOM + 46, RIGHT - 6, middle + 58, "var(--red)"),
    text(LEFT + BOX.width + 34, TOP + 42, `${taken["key-a"]} calls`, "small soft"),
    text(LEFT + BOX.width + 34, BOTTOM + 62, "refused", "small red bold"),
    text(
      LEFT,
      HEIGHT - 14,
      `key-b has enough, but ${refusal.limitName} of ${refusal.entityId} does not: retry in ${refusal.retryAfterSeconds} s. Nothing was charged.`,
      "small",
    ),
  ];
  return picture(
    {
      width: WIDTH,
      height: HEIGHT,
      title: "Cascade: the calls of two keys share a project's limit",
    },
    shapes,
  );
}

async function run() {
  const repository = new MemoryRepository({ clock: new ManualClock() });
  await repository.setSystemDefaults([Limit.perMinute("rpm", 10)]);
  await repository.createEntity("project");
  await repository.setLimits("project", [Limit.perMinute("rpm", 15)]);
  const limiter = new RateLimiter({ repository });
  const taken = { "key-a": 10, "key-b": 5 };
  const statuses = [];
  for (const [entityId, rpm] of Object.entries(taken)) {
    await repository.createEntity(entityId, { parentId: "project", cascade: true });
    await limiter.acquire({ entityId, resource: "gpt-4", consume: { rpm } }, () => {});
  }
  for (const entityId of Object.keys(taken)) {
    const verdict = await limiter.tryAcquire({ entityId, resource: "gpt-4", consume: { rpm: 1 } });
    if (verdict.granted) throw new Error("The call should have been refused.");
    statuses.push(...verdict.refusal.statuses);
    taken.refusal = verdict.refusal.primaryViolation;
  }
  const { refusal, ...amounts } = taken;
  return { taken: amounts, statuses, refusal };
}

function box(left, top, name, { limitName, available, limit }, note) {
  const inner = BOX.width - 32;
  const empty = available <= 0;
  return [
    rect(left, top, BOX.width, BOX.height, { fill: "var(--box)", stroke: "var(--line)", rx: 8 }),
    text(left + 16, top + 26, name, "bold"),
    text(
      left + BOX.width - 16,
      top + 26,
      `${limitName} ${available} of ${limit.capacity}`,
      empty ? "small mono end red" : "small mono end",
    ),
    rect(left + 16, top + 40, inner, 12, {
      fill: empty ? "var(--red-soft)" : "var(--line)",
      rx: 6,
    }),
    empty
      ? []
      : rect(left + 16, top + 40, (inner * available) / limit.capacity, 12, {
          fill: "var(--blue)",
          rx: 6,
        }),
    text(left + 16, top + 76, note, "small soft"),
  ];
}
