// Load tests with the real Artillery, where it was fetched (node tools/artillery.mjs): the built
// program under Node 24, which Artillery needs.
import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  copyFileSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import type { LoadReport } from "artillery-engine-zae-limiter/run";
import { artilleryProject, isArtilleryInstalled } from "../../../tools/artillery.mjs";
import { node24 } from "../../../tools/fetch-packages.mjs";
import { describeWithEngine, freshTableName } from "../../limiter/test/support/engine.ts";

const PROGRAM = fileURLToPath(new URL("../bin/zae-limiter.js", import.meta.url));
const ARTILLERY = "node_modules/artillery/bin/run";
const MODULES = fileURLToPath(new URL("../../../node_modules", import.meta.url));
const GUIDE = readFileSync(new URL("../../../docs/guide/load-testing.md", import.meta.url), "utf8");
const RECORD_CONNECTIONS = new URL("fixtures/record-connections.mjs", import.meta.url).href;

let folder: string;
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), "zae-limiter-loadtest-"))));
afterEach(() => rmSync(folder, { recursive: true }));

interface Ended {
  readonly code: number;
  readonly output: string;
}

/** Runs the program; it gets SIGINT as soon as it prints the text, if there is one. */
async function loadtest(
  words: readonly string[],
  { env = {}, interruptAt }: { readonly env?: object; readonly interruptAt?: string } = {},
): Promise<Ended> {
  const child = spawn(node24(), [PROGRAM, "loadtest", ...words], {
    cwd: artilleryProject,
    env: {
      ...process.env,
      AWS_ACCESS_KEY_ID: "local",
      AWS_SECRET_ACCESS_KEY: "local",
      ...env,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (chunk) => {
      const before = output;
      output += String(chunk);
      if (interruptAt === undefined || before.includes(interruptAt)) return;
      if (output.includes(interruptAt)) child.kill("SIGINT");
    });
  const [code] = (await once(child, "close")) as [number];
  return { code, output };
}

function readReport(output: string): LoadReport {
  return JSON.parse(readFileSync(join(output, "report.json"), "utf8")) as LoadReport;
}

/** On a busy machine the generator may be too slow, which is not what is tested here. */
function listOtherProblems({ problems }: LoadReport): readonly string[] {
  return problems.filter((problem) => !problem.startsWith("Generator too slow"));
}

const load = (target: string, output: string): readonly string[] =>
  `--target ${target} --duration 3 --rate 20 --users 2 --output ${output}`.split(" ");

if (!isArtilleryInstalled()) {
  const missing = "Artillery is not installed; run: node tools/artillery.mjs";
  console.warn(`SKIPPED ${missing}`);
  it.skip(missing, () => {});
} else {
  describeWithEngine("a load test on DynamoDB", (engine) => {
    it("makes no request that leaves this machine, in any of its processes", async () => {
      const log = join(folder, "connections.log");
      const { endpointUrl } = engine();
      const target = `dynamodb://us-east-1/${freshTableName()}?endpoint=${endpointUrl}`;
      const output = join(folder, "run");
      const { output: printed } = await loadtest(["run", "simple", ...load(target, output)], {
        env: { NODE_OPTIONS: `--import=${RECORD_CONNECTIONS}`, CONNECTIONS_LOG: log },
      });
      const lines = readFileSync(log, "utf8").trim().split("\n");
      const { host } = new URL(endpointUrl);
      expect([...new Set(lines.map((line) => line.split(" ")[1]))], printed).toEqual([host]);
      // This command, and the worker of Artillery.
      expect(new Set(lines.map((line) => line.split(" ")[0])).size).toBeGreaterThan(1);
      expect(readReport(output).users).toEqual({ created: 60, completed: 60, failed: 0 });
    });
  });

  describe("a load test", { timeout: 60_000 }, () => {
    it("verifies its ledger, and finds a grant that is there twice", async () => {
      const target = `sqlite:${join(folder, "load.db")}`;
      const output = join(folder, "run");
      await loadtest(["run", "simple", ...load(target, output)]);
      const report = readReport(output);
      expect(listOtherProblems(report)).toEqual([]);
      const grants = report.calls.find(({ name }) => name === "acquire")?.count;
      expect(report.verification).toMatchObject({ passed: true, grants, buckets: 2 });
      expect(report.generator).toMatchObject({ plannedArrivals: 60, createdArrivals: 60 });
      expect(readdirSync(output).toSorted()).toEqual(
        ["ledger", "report.html", "report.json", "report.md", "script.json"].toSorted(),
      );
      const ledger = join(output, "ledger");
      const again = await loadtest(["verify", output, "--target", target]);
      expect(again).toMatchObject({ code: 0, output: expect.stringContaining("Grants") });
      const [worker] = readdirSync(ledger);
      copyFileSync(join(ledger, worker!), join(ledger, "worker-1-1.jsonl"));
      const twice = await loadtest(["verify", ledger, "--target", target]);
      expect(twice).toMatchObject({ code: 1, output: expect.stringContaining("FAILED") });
    });

    it("creates exactly the users that a curve and a spike plan", async () => {
      const output = join(folder, "run");
      const words = `run llm-production --target memory: --duration 9 --rate 40 --output ${output}`;
      await loadtest(words.split(" "));
      const { generator } = readReport(output);
      expect(generator!.plannedArrivals).toBeGreaterThan(100);
      expect(generator!.createdArrivals).toBe(generator!.plannedArrivals);
    });

    it("runs the script of the guide, whose ledger is verified", async () => {
      const [script, users] = ["yaml", "js"].map(
        (language) => new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, "ms").exec(GUIDE)![1]!,
      );
      writeFileSync(join(folder, "users.mjs"), users!);
      writeFileSync(join(folder, "script.yml"), script!.replace("duration: 60", "duration: 2"));
      const child = spawn(node24(), [join(artilleryProject, ARTILLERY), "run", "script.yml"], {
        cwd: folder,
        env: { ...process.env, ARTILLERY_DISABLE_TELEMETRY: "true", NODE_PATH: MODULES },
        stdio: ["ignore", "pipe", "inherit"],
      });
      let printed = "";
      child.stdout.on("data", (chunk) => (printed += String(chunk)));
      expect(await once(child, "close"), printed).toEqual([0, null]);
      expect(printed).toMatch(/zae\.acquire_of\.chat\.count/);
      expect(printed).toMatch(/vusers\.failed: \.+ 0$/m);
      const target = `sqlite:${folder}/load.db`;
      const verified = await loadtest(["verify", join(folder, "ledger"), "--target", target]);
      expect(verified).toMatchObject({ code: 0, output: expect.stringContaining("Grants") });
    });

    it("reports what was measured when it is interrupted", async () => {
      const output = join(folder, "run");
      const words = `run simple --target memory: --duration 600 --rate 20 --output ${output}`;
      const interruptAt = "refused/s";
      const { output: printed } = await loadtest(words.split(" "), { interruptAt });
      expect(printed).toContain("The run was interrupted");
      const report = readReport(output);
      expect(report).toMatchObject({ interrupted: true, verification: { passed: true } });
      expect(report.users.created).toBeGreaterThan(0);
    });

    it("misses a bound of the p99 that nothing can hold", async () => {
      const words = `max simple --target memory: --duration 1 --rate 2 --p99 0.001 --output ${folder}/max`;
      const { code, output } = await loadtest(words.split(" "));
      expect(output).toMatch(/p99 was .*; the bound is 0.001 ms/);
      expect({ code, found: output.includes("No rate held.") }).toEqual({ code: 1, found: true });
    });
  });
}
