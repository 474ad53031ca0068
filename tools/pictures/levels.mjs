// The four levels of one entity and resource, and which of them each limit comes from: with a level
// that inherits, and with the same level that does not. Both are resolved by the library.
import { Limit } from "zae-limiter";
import { MemoryRepository } from "zae-limiter/memory";
import { arrow, picture, rect, text } from "./svg.mjs";

const LEVELS = [
  { source: "entity", name: "key-vip on gpt-4" },
  { source: "entity_default", name: "key-vip on everything" },
  { source: "resource", name: "everyone on gpt-4" },
  { source: "system", name: "everyone on everything" },
];
const NAMES = ["rpm", "tpm"];

const [WIDTH, HEIGHT] = [760, 420];
const PANEL = { width: 350, left: [20, 390] };
const [TOP, ROW, BOX] = [104, 52, 44];
const RESULT = TOP + LEVELS.length * ROW + 34;

export async function levels() {
  const shapes = [
    text(20, 36, "Which level a limit comes from: the strongest is on top", "bold"),
    text(20, 58, "An operator raises rpm of key-vip on gpt-4. Should tpm stay?", "soft small"),
    await panel(PANEL.left[0], true),
    await panel(PANEL.left[1], false),
  ];
  return picture(
    {
      width: WIDTH,
      height: HEIGHT,
      title: "Four levels of limits, with a level that inherits and one that does not",
    },
    shapes,
  );
}

async function panel(left, inherit) {
  const policy = await resolve(inherit);
  const stored = new Map(policy.levels.map((level) => [level.source, level]));
  const last = policy.levels.findIndex((level) => !level.inherit);
  const end = last === -1 ? policy.levels.length : last + 1;
  const reached = new Set(policy.levels.slice(0, end).map(({ source }) => source));
  return [
    text(
      left,
      TOP - 16,
      inherit ? "as stored by default" : "{ inherit: false }",
      "mono small bold",
    ),
    LEVELS.map(({ source, name }, index) =>
      levelBox(left, TOP + index * ROW, {
        name,
        limits: stored.get(source)?.limits ?? [],
        isReached: reached.has(source),
        used: NAMES.filter((limit) => policy.sources[limit] === source),
      }),
    ),
    arrow(left + PANEL.width / 2, RESULT - 30, left + PANEL.width / 2, RESULT - 6),
    rect(left, RESULT, PANEL.width, 56, { fill: "none", stroke: "var(--ink)", rx: 8 }),
    text(left + 14, RESULT + 22, "what holds", "small soft"),
    NAMES.map((name, index) => result(left + 110 + index * 130, policy, name)),
  ];
}

function levelBox(left, top, { name, limits, isReached, used }) {
  const none = limits.length === 0;
  return [
    `<g opacity="${isReached || none ? 1 : 0.4}">`,
    rect(left, top, PANEL.width, BOX, {
      fill: none ? "none" : "var(--box)",
      stroke: "var(--line)",
      "stroke-dasharray": none ? "4 4" : "none",
      rx: 8,
    }),
    text(left + 14, top + 27, name, none ? "small soft" : "small"),
    limits.map((limit) => {
      const chip = left + 204 + NAMES.indexOf(limit.name) * 72;
      const isUsed = used.includes(limit.name);
      return [
        rect(chip, top + 10, 66, 24, {
          fill: isUsed ? "var(--green-soft)" : "var(--paper)",
          stroke: isUsed ? "var(--green)" : "var(--line)",
          rx: 6,
        }),
        text(chip + 33, top + 26, limitText(limit), isUsed ? "small middle" : "small middle soft"),
      ];
    }),
    "</g>",
  ];
}

function result(left, policy, name) {
  const limit = policy.limits.find((candidate) => candidate.name === name);
  if (limit === undefined)
    return [
      text(left, RESULT + 22, `no ${name}`, "bold red"),
      text(left, RESULT + 42, "not limited", "small red"),
    ];
  return [
    text(left, RESULT + 22, limitText(limit), "bold green"),
    text(left, RESULT + 42, `from ${policy.sources[name]}`, "small soft"),
  ];
}

function resolve(inherit) {
  return store(inherit).then((repository) => repository.resolveLimits("key-vip", "gpt-4"));
}

async function store(inherit) {
  const repository = new MemoryRepository();
  await repository.setSystemDefaults([Limit.perMinute("rpm", 60), Limit.perMinute("tpm", 10_000)]);
  await repository.setResourceDefaults("gpt-4", [Limit.perMinute("rpm", 20)]);
  await repository.setLimits("key-vip", [Limit.perMinute("rpm", 600)], {
    resource: "gpt-4",
    inherit,
  });
  return repository;
}

function limitText({ name, capacity }) {
  return `${name} ${capacity >= 1000 ? `${capacity / 1000}k` : capacity}`;
}
