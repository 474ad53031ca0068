import { SqliteRepository } from "zae-limiter/sqlite";
import { it } from "vitest";
import { getEach, seedsFromEnvironment } from "../../support/seeded/seeds.ts";
import { temporaryFile } from "../../support/temporary-file.ts";
import { raceWrites } from "../../../../contract/src/guarded-writes.ts";

const SEEDS = seedsFromEnvironment({ usual: 4 });

it(`no write takes effect once another connection has ended its revision, over ${SEEDS.count} seeds`, async () => {
  const path = temporaryFile();
  await using writing = await SqliteRepository.open(path);
  await using applying = await SqliteRepository.open(path);
  for (const seed of getEach(SEEDS)) await raceWrites({ writing, applying, seed });
});
