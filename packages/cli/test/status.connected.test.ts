// The built program on a DynamoDB engine, in a process of its own, where the SDK's warnings go.
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { VERSION } from "zae-limiter";
import { expect, it } from "vitest";
import { describeWithEngine, freshTableName } from "../../limiter/test/support/engine.ts";
import type { Outcome } from "./command-line.ts";

const PROGRAM = fileURLToPath(new URL("../bin/zae-limiter.js", import.meta.url));

function zaeLimiter(url: string, ...args: readonly string[]): Promise<Outcome> {
  // The tests switch the notice off for themselves; users do not.
  const { AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: _, ...env } = process.env;
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      [PROGRAM, ...args],
      { env: { ...env, ZAEL_REPOSITORY: url } },
      (error, stdout, stderr) =>
        resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr }),
    );
  });
}

describeWithEngine("the program on DynamoDB", (engine) => {
  it(
    "leaves out the SDK's notice about Node, except that status shows it once",
    { timeout: 60_000 },
    async () => {
      const endpoint = encodeURIComponent(engine().endpointUrl);
      const table = freshTableName();
      const url = `dynamodb://eu-west-1/${table}?endpoint=${endpoint}`;
      for (const verb of ["namespace register default", "entity list"])
        expect(await zaeLimiter(url, ...verb.split(" "))).toMatchObject({ code: 0, stderr: "" });
      const { code, stdout, stderr } = await zaeLimiter(url, "status");
      expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
      expect(stdout).toContain(`Connectivity\n  Repository   ${url}\n`);
      expect(stdout).toContain("Driver       @aws-sdk/client-dynamodb\n");
      expect(stdout).toContain(`Table        ${table}\n  Region       eu-west-1\n`);
      expect(stdout).toContain(`zae-limiter  ${VERSION}\n`);
      expect(stdout).toMatch(/^ {2}Schema +\d+\.\d+\.\d+$/m);
      const isOld = Number(process.versions.node.split(".")[0]) < 22;
      expect(stdout.match(/The AWS SDK for JavaScript/g)?.length ?? 0).toBe(isOld ? 1 : 0);
    },
  );
});
