import { Limit, RateLimiter } from "zae-limiter";
import { SqliteRepository } from "zae-limiter/sqlite";
import { expect, it } from "vitest";
import { temporaryFile } from "../../../test/support/temporary-file.ts";

const call = { entityId: "key-1", resource: "gpt-4", consume: { rpm: 1 } };

it("a lease can take from a limit that another process has just added", async () => {
  const path = temporaryFile();
  await using repository = await SqliteRepository.open(path);
  await using other = await SqliteRepository.open(path);
  await repository.setSystemDefaults([Limit.perMinute("rpm", 10)]);
  const limiter = new RateLimiter({ repository });
  await using lease = await limiter.acquire(call);
  await other.setSystemDefaults([Limit.perMinute("rpm", 10), Limit.perMinute("tpm", 100)]);
  await lease.consume({ tpm: 60 });
  expect(await limiter.available("key-1", "gpt-4")).toEqual({ rpm: 9, tpm: 40 });
  await expect(lease.consume({ tmp: 1 })).rejects.toThrow("no such limit");
});
