/*
 * Kills processes that write, at random moments, and looks at the file after each: it opens, its
 * pages are whole, nothing that was answered is lost, and nothing was charged that was not asked
 * for. Two run at a time, so that the lock of a dead process meets a living one. Prints where the
 * kills landed and exits 1 when something does not hold, or when a kind of moment was never hit.
 * Usage: node crashes.js [--kills 120] [--seed 1]
 */
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { SqliteRepository } from "zae-limiter/sqlite";
import { seededRandom } from "zae-limiter/testing";
import { SHARED, type Word } from "./crash-worker.ts";
import { observedDatabase } from "./observed-database.ts";

/** How long a process lives after its first answer, at most. */
const LONGEST_LIFE_MS = 20;

/**
 * Kills after the planned ones that are allowed for hitting a kind of moment that is still missing.
 */
const MOST_KILLS = 400;

const KINDS = ["in-transaction", "in-commit", "between"] as const;

interface Death {
  readonly kind: (typeof KINDS)[number];
  readonly answered: { readonly own: number; readonly shared: number };
  /** Asked and not answered: it may be in the file or not. */
  readonly open: { readonly own: number; readonly shared: number };
}

const { values } = parseArgs({
  options: { kills: { type: "string", default: "120" }, seed: { type: "string", default: "1" } },
});
const random = seededRandom(Number(values.seed));
const folder = mkdtempSync(join(tmpdir(), "zae-limiter-crashes-"));
const path = join(folder, "limits.db");
const landed = new Map<string, number>(KINDS.map((kind) => [kind, 0]));
const shared = { answered: 0, open: 0 };
const problems: string[] = [];

try {
  await (await SqliteRepository.open(path)).close();
  const planned = Number(values.kills);
  for (let kills = 0; kills < planned || (isKindMissing() && kills < MOST_KILLS); kills += 2) {
    const names = [`e${kills}`, `e${kills + 1}`];
    const deaths = await Promise.all(names.map((name, index) => kill(name, kills + index)));
    for (const { kind, answered, open } of deaths) {
      landed.set(kind, landed.get(kind)! + 1);
      shared.answered += answered.shared;
      shared.open += open.shared;
    }
    await verify(names, deaths);
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
console.log(
  `killed ${[...landed].map(([kind, count]) => `${count} ${kind}`).join(", ")}; ${shared.answered} tokens answered on the shared bucket`,
);
for (const kind of KINDS) if (landed.get(kind) === 0) problems.push(`no kill landed ${kind}`);
for (const problem of problems) console.error(`FAILED: ${problem}`);
process.exitCode = problems.length === 0 ? 0 : 1;

function isKindMissing(): boolean {
  return KINDS.some((kind) => landed.get(kind) === 0);
}

/**
 * Starts a process, lets it be answered once, kills it a random while later, and reads its last
 * words.
 */
function kill(entityId: string, seed: number): Promise<Death> {
  const script = fileURLToPath(new URL("crash-worker.js", import.meta.url));
  const child = spawn(process.execPath, [script, path, entityId, String(seed)], {
    stdio: ["ignore", "inherit", "inherit", "pipe"],
    env: { ...process.env, NODE_NO_WARNINGS: "1" },
  });
  let words = "";
  let doomed = false;
  return new Promise((resolve, reject) => {
    const pipe = child.stdio[3]!;
    pipe.on("data", (chunk: Buffer) => {
      words += chunk.toString();
      if (doomed || !words.includes("answered")) return;
      doomed = true;
      setTimeout(() => child.kill("SIGKILL"), random() * LONGEST_LIFE_MS);
    });
    child.once("error", reject);
    child.once("close", (_, signal) => {
      if (signal === "SIGKILL") resolve(parseDeath(words));
      else reject(new Error(`a process ended by itself after: ${words.slice(-200)}`));
    });
  });
}

function parseDeath(words: string): Death {
  const answered = { own: 0, shared: 0 };
  const open = { own: 0, shared: 0 };
  let kind: Death["kind"] = "between";
  let place: "own" | "shared" = "shared";
  for (const line of words.split("\n").slice(0, -1)) {
    const [word, amount] = line.split(" ") as [Word, string?];
    if (word === "asked") {
      place = place === "own" ? "shared" : "own";
      open[place] += Number(amount);
    } else if (word === "answered") {
      open[place] -= Number(amount);
      answered[place] += Number(amount);
    } else kind = word;
  }
  return { kind, answered, open };
}

async function verify(names: readonly string[], deaths: readonly Death[]): Promise<void> {
  const database = await observedDatabase(path, {});
  const repository = await SqliteRepository.open(path, { database, principal: "checker" });
  const whole = database.prepare("PRAGMA integrity_check").get() as { integrity_check: string };
  if (whole.integrity_check !== "ok")
    problems.push(`the file is damaged: ${whole.integrity_check}`);
  for (const [index, name] of names.entries()) {
    const { answered, open } = deaths[index]!;
    await verifyBucket(repository, name, { answered: answered.own, open: open.own });
  }
  await verifyBucket(repository, SHARED, shared);
  await repository.close();
  database.close();
}

async function verifyBucket(
  repository: SqliteRepository,
  entityId: string,
  { answered, open }: { readonly answered: number; readonly open: number },
): Promise<void> {
  const stored = ((await repository.getBuckets(entityId))[0]?.totalConsumedMilli ?? 0) / 1000;
  const usage = (await repository.getUsageSummary({ entityId })).total["tps"] ?? 0;
  if (stored < answered)
    problems.push(`${entityId}: ${answered} were answered and only ${stored} are stored`);
  if (stored > answered + open)
    problems.push(
      `${entityId}: ${stored} are stored, but only ${answered} answered and ${open} under way`,
    );
  if (usage !== stored) problems.push(`${entityId}: usage is ${usage}, consumption ${stored}`);
}
