// The built program in a process of its own, on the stream of an engine's table.
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { Limit, RateLimiter } from "zae-limiter";
import { DynamoRepository } from "zae-limiter/dynamodb";
import { describeWithEngine, freshTableName } from "../../limiter/test/support/engine.ts";

const PROGRAM = fileURLToPath(new URL("../bin/zae-limiter.js", import.meta.url));

describeWithEngine("aggregate", (engine) => {
  it(
    "runs until it is interrupted, and then exits 0 with what it did",
    { timeout: 60_000 },
    async () => {
      const { endpointUrl } = engine();
      const stack = freshTableName();
      const repository = await DynamoRepository.open(undefined, { stack, endpointUrl });
      await repository.setSystemDefaults([Limit.perMinute("rpm", 10)]);
      const limiter = new RateLimiter({ repository });
      await limiter.acquire({ entityId: "a", resource: "r", consume: { rpm: 1 } }, () => {});
      await repository.close();
      const url = `dynamodb://eu-west-1/${stack}?endpoint=${encodeURIComponent(endpointUrl)}`;
      const child = spawn(process.execPath, [PROGRAM, "--repository", url, "aggregate"]);
      let [stdout, stderr] = ["", ""];
      child.stdout.on("data", (text) => (stdout += String(text)));
      // The first line of progress comes when it holds the only shard.
      await new Promise<void>((resolve) => {
        child.stderr.on("data", (text) => {
          stderr += String(text);
          if (stderr.includes("1 of 1 shards")) resolve();
        });
      });
      child.kill("SIGTERM");
      const code = await new Promise((resolve) => child.once("close", resolve));
      expect({ code, stderr }).toMatchObject({ code: 0 });
      expect(stdout).toMatch(/^Stopped\. The next run continues here\.$/m);
      expect(stderr).toContain("Ending after the batches that are under way.");
    },
  );
});
