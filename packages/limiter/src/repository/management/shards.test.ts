import { expect, it } from "vitest";
import { MemoryRepository } from "zae-limiter/memory";
import { SqliteRepository } from "zae-limiter/sqlite";
import { closeLater, temporaryFile } from "../../../test/support/temporary-file.ts";

it("splits and merges buckets only on backends that have shards", async () => {
  const sqlite = closeLater(await SqliteRepository.open(temporaryFile()));
  for (const repository of [new MemoryRepository(), sqlite]) {
    expect(repository.splitBucket).toBeUndefined();
    expect(repository.mergeBucket).toBeUndefined();
  }
});
