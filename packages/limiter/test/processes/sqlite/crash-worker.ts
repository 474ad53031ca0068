/*
 * A process that is going to be killed. Before each step it reports on file descriptor 3 where it
 * is, with a write that blocks, so that the last word that arrives is where it died. Usage: node
 * crash-worker.js FILE ENTITY SEED
 */
import { writeSync } from "node:fs";
import { Limit, RateLimiter } from "zae-limiter";
import { SqliteRepository } from "zae-limiter/sqlite";
import { seededRandom } from "zae-limiter/testing";
import { observedDatabase } from "./observed-database.ts";

/** What the words mean. `asked` and `answered` carry an amount. */
export type Word = "in-transaction" | "in-commit" | "between" | "asked" | "answered";

/** A limit that refuses no call. */
export const LIMIT = Limit.perSecond("tps", 1_000_000_000);

/** The bucket that all processes share, beside the one of their own. */
export const SHARED = "shared";

if (process.argv[1]?.endsWith("crash-worker.js"))
  await work(process.argv[2]!, process.argv[3]!, Number(process.argv[4]));

async function work(path: string, entityId: string, seed: number): Promise<void> {
  const random = seededRandom(seed);
  const database = await observedDatabase(path, {
    before: (sql) => sql === "COMMIT" && say("in-commit"),
    after: (sql) => {
      if (sql.startsWith("BEGIN IMMEDIATE")) say("in-transaction");
      if (sql === "COMMIT") say("between");
    },
  });
  const repository = await SqliteRepository.open(path, { database, random });
  const limiter = new RateLimiter({ repository });
  for (;;) {
    const tps = 1 + Math.floor(random() * 9);
    for (const owner of [entityId, SHARED]) {
      say("asked", tps);
      await limiter.acquire({
        entityId: owner,
        resource: owner,
        consume: { tps },
        limits: [LIMIT],
      });
      say("answered", tps);
    }
  }
}

function say(word: Word, amount?: number): void {
  writeSync(3, amount === undefined ? `${word}\n` : `${word} ${amount}\n`);
}
