// Walks a warm acquire on DynamoDB from the call to the written settlement, and shows which files
// of the library it visits, in order. ARCHITECTURE.md has the dozen of them that decide.
//
//   npm run walk            the files, and how many hops
//   npm run walk -- --hops  each hop too
//   npm run walk -- --json  for a program
//
// A file is visited when one of its functions is entered. A hop is a step from one file to another,
// counted once however often it is walked: a loop over limits reads no different the second time.
import { register } from "node:module";

const built = new URL("../packages/limiter/dist/", import.meta.url);
const entered = [];

register("./walk-hooks.mjs", import.meta.url, { data: { root: built.href } });
const { startEngine } = await import(new URL("../bench/dist/dynamodb/engine.js", import.meta.url));
const { Limit, RateLimiter } = await import(new URL("index.js", built));
const { DynamoRepository } = await import(new URL("repository/dynamodb/index.js", built));

const engine = await startEngine();
try {
  await walk(engine.endpointUrl);
} finally {
  await engine.stop();
}
report();

async function walk(endpointUrl) {
  const repository = await DynamoRepository.open("walk", {
    stack: `walk-${process.pid}`,
    endpointUrl,
    provisioning: "table",
    clock: makeStoppedClock(),
  });
  await repository.setSystemDefaults([
    Limit.perMinute("rpm", 1000),
    Limit.perMinute("tpm", 100_000),
  ]);
  const limiter = new RateLimiter({ repository });
  // Half empty, so that the walk is that of most calls: a take without a refill.
  await limiter.acquire(call(50_000), () => {});
  await limiter.acquire(call(500), (lease) => lease.settle({ tpm: 400 }));
  globalThis.noteEntry = (file) => entered.push(file);
  await limiter.acquire(call(500), (lease) => lease.settle({ tpm: 400 }));
  delete globalThis.noteEntry;
  await repository.deleteTable();
  await repository.close();
}

/** Time stands still, so that a slow machine walks the same way: time would earn tokens. */
function makeStoppedClock() {
  const nowMs = Date.now();
  return { now: () => nowMs, sleep: () => new Promise(() => {}) };
}

function call(tpm) {
  return { entityId: "key", resource: "gpt-4", consume: { rpm: 1, tpm } };
}

function report() {
  const visits = entered.filter((file, index) => file !== entered[index - 1]);
  const files = [...new Set(visits)];
  const hops = [...new Set(visits.slice(1).map((file, index) => `${visits[index]} → ${file}`))];
  if (process.argv.includes("--json")) return console.log(JSON.stringify({ files, hops }));
  for (const file of files) console.log(file);
  if (process.argv.includes("--hops")) console.log(`\n${hops.join("\n")}`);
  console.log(`\n${files.length} files, ${hops.length} hops between them`);
}
