import { SqliteRepository } from "zae-limiter/sqlite";
import { expect, it } from "vitest";
import { otherConnection, temporaryFile } from "../../limiter/test/support/temporary-file.ts";
import { zaeLimiter } from "./command-line.ts";

it("purges a namespace again, and says so if nothing came late", async () => {
  const path = temporaryFile();
  const open = async (): Promise<SqliteRepository> => SqliteRepository.open(path);
  const repository = await open();
  const id = await repository.registerNamespace("tenant");
  await repository.close();
  const run = (line: string): ReturnType<typeof zaeLimiter> => zaeLimiter(line, { open });
  await run("namespace delete tenant --yes");
  expect((await run(`namespace purge ${id} --yes`)).code).toBe(0);
  (await otherConnection(path)).exec(
    `INSERT INTO usage (namespace_id, entity_id, resource, hour_ms, requests, counters, cascaded_requests, cascaded_counters)
      VALUES ('${id}', 'e', 'r', 0, 1, '{}', 0, '{}')`,
  );
  const again = await run(`namespace purge ${id}`);
  expect([again.code, again.stdout]).toEqual([0, `Purged namespace ${id}: 1 records.\n`]);
  const last = await run(`namespace purge ${id}`);
  expect([last.code, last.stderr]).toEqual([
    1,
    `error: No namespace has the id ${id}. To list the ids of deleted ones: zae-limiter namespace orphans\n`,
  ]);
});
