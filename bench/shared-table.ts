/*
 * What happens when the Python zae-limiter and this one use one table; run it with
 * `npm run bench:shared-table`. The guide's page on Python and TypeScript has the tables that it
 * prints. Each version of the Python library is installed once, from PyPI.
 */
import { Limit } from "zae-limiter";
import { DynamoRepository } from "zae-limiter/dynamodb";
import { startEngine } from "./dynamodb/engine.ts";
import { hammer, toMessage, read } from "./shared-table/our-client.ts";
import { PythonClient, type Ends, type Load } from "./shared-table/python-client.ts";

const VERSIONS = ["0.10.3", "0.17.0"];
const CALLERS = 8;
const CALLS = 300;
const SECONDS = 5;
const A_DAY = 100;
const A_SECOND = 50;

/** Far above the minute that it all takes. */
const WATCHDOG_MS = 300_000;

/** Credentials that any engine accepts; the SDK need not say that it wants a newer Node. */
Object.assign(process.env, {
  AWS_ACCESS_KEY_ID: "local",
  AWS_SECRET_ACCESS_KEY: "local",
  AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: "true",
});

setTimeout(() => {
  console.error(`The measurement did not end within ${WATCHDOG_MS / 1000} s.`);
  process.exit(1);
}, WATCHDOG_MS).unref();
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(130));

const engine = await startEngine();
try {
  for (const version of VERSIONS) {
    const python = await PythonClient.start(version);
    if ("missing" in python) {
      console.log(`!!! SKIPPED !!! zae-limiter ${version}: ${python.missing}\n`);
      continue;
    }
    try {
      console.log(`# zae-limiter ${version} of PyPI\n`);
      await tellOpening(python, version);
      await tellSharing(python, version);
    } finally {
      await python.end();
    }
  }
} finally {
  await engine.stop();
}

/** Whether each opens a table of the other. */
async function tellOpening(python: PythonClient, version: string): Promise<void> {
  const { endpointUrl } = engine;
  const [ours, theirs] = [`ours-${version}`, `theirs-${version}`].map((name) =>
    name.replaceAll(".", "-"),
  ) as [string, string];
  await (await openOurs(ours)).close();
  const rows = [
    [
      "Python",
      "TypeScript",
      await describeOpening(python.open(endpointUrl, ours, { checked: true })),
    ],
  ];
  await python.create(endpointUrl, theirs);
  await python.open(endpointUrl, theirs, { checked: true });
  const opening = openOurs(theirs).then((repository) => repository.close());
  rows.push(["TypeScript", "Python", await describeOpening(opening)]);
  tell("opening", ["who", "table of", "what happens"], rows);
}

/** What each finds of the other, and who gets how much, in one namespace of our table. */
async function tellSharing(python: PythonClient, version: string): Promise<void> {
  const stack = `shared-${version}`.replaceAll(".", "-");
  const repository = await openOurs(stack);
  try {
    await repository.setResourceDefaults("daily", [Limit.perDay("calls", A_DAY)], {
      inherit: false,
    });
    await repository.setResourceDefaults("steady", [Limit.perSecond("calls", A_SECOND)], {
      inherit: false,
    });
    await python.open(engine.endpointUrl, stack, { checked: false });
    await tellReading(python, repository);
    await tellRaces(python, repository);
  } finally {
    await repository.close();
  }
}

async function tellReading(python: PythonClient, repository: DynamoRepository): Promise<void> {
  const resource = "daily";
  const limits = [Limit.perDay("calls", A_DAY)];
  await repository.createEntity("ts-project");
  await repository.createEntity("ts-key", { parentId: "ts-project" });
  await repository.setLimits("ts-key", limits, { resource, inherit: false });
  await repository.setLimits("ts-key-inheriting", limits, { resource });
  await hammer(repository, { entity: "ts-key", resource, callers: 1, calls: 10 });
  await python.store("py-project", "py-key", resource);
  await python.hammer({ entity: "py-key", resource, callers: 1, calls: 10 });
  const [byPython, byUs] = [
    await python.read("ts-project", "ts-key", resource),
    await read(repository, { project: "py-project", key: "py-key", resource }),
  ];
  for (const [title, found] of [
    ["what Python finds of what TypeScript wrote (10 calls of 100 taken)", byPython],
    ["what TypeScript finds of what Python wrote (10 calls of 100 taken)", byUs],
  ] as const)
    tell(title, ["what", "found"], Object.entries(found));
}

async function tellRaces(python: PythonClient, repository: DynamoRepository): Promise<void> {
  const daily = { resource: "daily", callers: CALLERS, calls: CALLS };
  const steady = { resource: "steady", callers: CALLERS, seconds: SECONDS };
  const first = { callers: 1, calls: 1 };
  const byUs = async (load: Load): Promise<unknown> => hammer(repository, { ...load, ...first });
  const byPython = async (load: Load): Promise<unknown> => python.hammer({ ...load, ...first });
  const split = async (load: Load): Promise<void> => {
    await byUs(load);
    await repository.splitBucket?.(load.entity, load.resource, { shards: 4 });
  };
  const races = [
    ["100 a day, TypeScript's bucket", { ...daily, entity: "day-ts" }, byUs],
    ["100 a day, TypeScript's bucket of 4 shards", { ...daily, entity: "day-split" }, split],
    ["100 a day, Python's bucket", { ...daily, entity: "day-py" }, byPython],
    ["50 a second for 5 s, TypeScript's bucket", { ...steady, entity: "rate-ts" }, byUs],
    [
      "50 a second for 5 s, TypeScript's bucket of 4 shards",
      { ...steady, entity: "rate-split" },
      split,
    ],
    ["50 a second for 5 s, Python's bucket", { ...steady, entity: "rate-py" }, byPython],
  ] as const;
  const rows: string[][] = [];
  const messages = new Set<string>();
  for (const [title, load, prepare] of races) {
    await prepare(load);
    const ends = await Promise.all([python.hammer(load), hammer(repository, load)]);
    const granted = ends.map((end) => end["granted"] ?? 0);
    // The first token of a day was taken by the process that made the bucket.
    const most = "seconds" in load ? A_SECOND * (SECONDS + 1) : A_DAY - 1;
    rows.push([title, String(most), String(granted[0]! + granted[1]!), ...ends.map(summary)]);
    for (const end of ends)
      for (const name of Object.keys(end))
        if (!["granted", "refused", "failed"].includes(name)) messages.add(name);
  }
  tell(
    `both at once, ${CALLERS} callers each (granted / refused / failed)`,
    ["bucket", "at most", "granted", "Python", "TypeScript"],
    rows,
  );
  for (const message of messages) console.log(`  ${message}`);
  console.log();
}

/** Prints a table as a page of the guide has it. */
function tell(
  title: string,
  header: readonly string[],
  rows: readonly (readonly string[])[],
): void {
  const lines = [header, header.map(() => "---"), ...rows].map(
    (cells) => `| ${cells.join(" | ")} |`,
  );
  console.log(`${title}:\n\n${lines.join("\n")}\n`);
}

async function describeOpening(opening: Promise<unknown>): Promise<string> {
  return opening.then(() => "opens it", toMessage);
}

function summary(ends: Ends): string {
  return ["granted", "refused", "failed"].map((end) => ends[end] ?? 0).join(" / ");
}

function openOurs(stack: string): Promise<DynamoRepository> {
  const { endpointUrl } = engine;
  return DynamoRepository.open("app", { stack, endpointUrl, region: "us-east-1" });
}
