// Two short load tests on SQLite and on the local system of DynamoDB, under Node 24, which
// Artillery needs: `npm run loadtest`. Fails when a limit was exceeded, a user failed, or nothing
// was verified. A generator that was too slow is only told: numbers of a busy machine say nothing.
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { installArtillery } from "./artillery.mjs";
import { node24 } from "./fetch-packages.mjs";

const SECONDS = 12;

/** Users a second: what two cores can do with both ends of DynamoDB on them. */
const RATES = { sqlite: 100, dynamodb: 50 };

const program = fileURLToPath(new URL("../packages/cli/bin/zae-limiter.js", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "zae-limiter-loadtest-"));
// Artillery is looked for from the working directory.
const options = {
  cwd: installArtillery(),
  env: { ...process.env, ZAEL_LOCAL_FOLDER: join(folder, "local") },
};
const node = node24();
let failures = 0;
try {
  for (const scenario of ["simple", "stress"])
    runScenario("sqlite", scenario, `sqlite:${join(folder, `${scenario}.db`)}`);
  zaeLimiter("local", "up", "--detach", "--port", "0");
  try {
    const { ZAEL_REPOSITORY } = JSON.parse(zaeLimiter("local", "env", "--format", "json"));
    for (const scenario of ["simple", "stress"]) runScenario("dynamodb", scenario, ZAEL_REPOSITORY);
  } finally {
    zaeLimiter("local", "down");
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
process.exitCode = failures === 0 ? 0 : 1;

function zaeLimiter(...words) {
  return execFileSync(node, [program, ...words], { ...options, encoding: "utf8" });
}

function runScenario(store, scenario, target) {
  const output = join(folder, `${store}-${scenario}`);
  const load = ["--duration", SECONDS, "--rate", RATES[store], "--output", output];
  const words = ["loadtest", "run", scenario, "--target", target, ...load].map(String);
  const { stdout, stderr } = spawnSync(node, [program, ...words], { ...options, encoding: "utf8" });
  const report = readReport(output);
  const isSound =
    report !== undefined &&
    report.verification?.passed === true &&
    report.verification.grants > 0 &&
    report.problems.every((problem) => problem.startsWith("Generator too slow"));
  if (!isSound) failures += 1;
  console.log(`${isSound ? "ok    " : "FAILED"} ${scenario} on ${store}\n${stdout}${stderr}`);
}

function readReport(output) {
  try {
    return JSON.parse(readFileSync(join(output, "report.json"), "utf8"));
  } catch {
    return undefined;
  }
}
