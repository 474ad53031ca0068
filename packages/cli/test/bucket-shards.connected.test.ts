import { MemoryRepository } from "zae-limiter/memory";
import { beforeEach, describe, expect, it } from "vitest";
import { openRepository } from "zae-limiter/open";
import { describeWithEngine, freshTableName } from "../../limiter/test/support/engine.ts";
import { readJson, zaeLimiter, type Outcome, type Setup } from "./command-line.ts";

describeWithEngine("bucket split and merge on DynamoDB", (engine) => {
  let here: Setup;
  const run = (line: string): Promise<Outcome> => zaeLimiter(line, here);

  beforeEach(async () => {
    const url = `dynamodb://eu-west-1/${freshTableName()}?endpoint=${encodeURIComponent(engine().endpointUrl)}`;
    here = { open: openRepository, env: { ZAEL_REPOSITORY: url } };
    await run("namespace register default");
    await run("system set-defaults rpd:40/day tpd:100001/day");
    await run("acquire key-1 gpt-4 rpd=10");
  });

  it("divides a bucket and its balance", async () => {
    expect(await run("bucket split key-1 --resource gpt-4 --shards 4")).toEqual({
      code: 0,
      stdout:
        "The bucket of key-1 for gpt-4 has 4 shards. To see them: zae-limiter bucket show key-1 --resource gpt-4\n",
      stderr: "",
    });
    const buckets = (await readJson("bucket show key-1", here)) as readonly Record<
      string,
      unknown
    >[];
    expect(buckets.filter(({ limitName }) => limitName === "rpd")).toMatchObject(
      [0, 1, 2, 3].map((shard) => ({
        shard,
        shardCount: 4,
        tokensMilli: 7500,
        capacityMilli: 10_000,
      })),
    );
    const table = (await run("bucket show key-1")).stdout.replaceAll(/ {2}\d{4}-.*$/gm, "");
    expect(table).toContain(
      "gpt-4     rpd    2/4            7         10  10 every 86,400 s                0\n",
    );
    expect(await readJson("available key-1 gpt-4", here)).toMatchObject({
      available: { rpd: 30, tpd: 100_001 },
    });
  });

  it("prints the actual number of shards, even when there were more already", async () => {
    for (const [wanted, shards] of [
      [1, 1],
      [8, 8],
      [2, 8],
    ])
      expect(await readJson(`bucket split key-1 -r gpt-4 --shards ${wanted}`, here)).toEqual({
        entityId: "key-1",
        resource: "gpt-4",
        shards,
      });
  });

  it("merges a bucket", async () => {
    await run("bucket split key-1 --resource gpt-4 --shards 8");
    expect(await readJson("bucket merge key-1 -r gpt-4 --shards 4", here)).toEqual({
      entityId: "key-1",
      resource: "gpt-4",
      shards: 4,
    });
    expect(await run("bucket merge key-1 --resource gpt-4 --shards 1")).toEqual({
      code: 0,
      stdout:
        "The bucket of key-1 for gpt-4 has 1 shard. To see it: zae-limiter bucket show key-1 --resource gpt-4\n",
      stderr: "",
    });
    expect(await readJson("bucket show key-1", here)).toMatchObject([
      { limitName: "rpd", shardCount: 1, capacityMilli: 40_000 },
      { limitName: "tpd", shardCount: 1 },
    ]);
    expect(await readJson("available key-1 gpt-4", here)).toMatchObject({
      available: { rpd: 30, tpd: 100_001 },
    });
  });

  it.each([
    [
      "bucket merge unknown -r gpt-4 --shards 1",
      "has no bucket for gpt-4 yet; the first acquire creates it (got 'unknown')",
    ],
    [
      "bucket split unknown -r gpt-4 --shards 2",
      "has no bucket for gpt-4 yet; the first acquire creates it (got 'unknown')",
    ],
    [
      "bucket split key-1 -r gpt-4 --shards 64",
      "the bucket cannot have that many shards: more than maxShards allows (got 64)",
    ],
    [
      "bucket split key-1 -r small --shards 4",
      "the bucket cannot have that many shards: shares below one token (got 4)",
    ],
    ["bucket split key-1 -r gpt-4 --shards 2 -N other", "Namespace other does not exist."],
  ])("fails for %s, splits nothing, and says why", async (line, reason) => {
    await run("resource set-defaults small rpd:3/day --replace --yes");
    await run("acquire key-1 small rpd=1");
    const { code, stdout, stderr } = await run(line);
    expect(stderr).toContain(reason);
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(await readJson("bucket show key-1", here)).toMatchObject([
      { shardCount: 1 },
      { shardCount: 1 },
      { shardCount: 1 },
    ]);
  });
});

describe("bucket split and merge", () => {
  it("says that embedded backends need no shards", async () => {
    for (const verb of ["split", "merge"])
      expect(await onMemory(`bucket ${verb} key-1 --resource gpt-4 --shards 4`)).toEqual({
        code: 1,
        stdout: "",
        stderr:
          "error: Invalid shards: this repository has none. Only buckets in a DynamoDB table have shards; embedded backends need none (got 4)\n",
      });
  });

  it.each([
    ["bucket split key-1 --shards 4", "--resource"],
    ["bucket split key-1 -r gpt-4", "--shards"],
    ["bucket split key-1 -r gpt-4 --shards 0", "power of two"],
    ["bucket merge key-1 --shards 1", "--resource"],
    ["bucket merge key-1 -r gpt-4 --shards 3", "power of two"],
    ["bucket split key-1 -r gpt-4 --shards 6", "power of two"],
    ["bucket split key-1 -r gpt-4 --shards 2.0", "power of two"],
  ])("exits 2 for %s and says %s", async (line, hint) => {
    const { code, stderr } = await onMemory(line);
    expect(code).toBe(2);
    expect(stderr).toContain(hint);
  });
});

function onMemory(line: string): Promise<Outcome> {
  return zaeLimiter(line, { repository: new MemoryRepository() });
}
