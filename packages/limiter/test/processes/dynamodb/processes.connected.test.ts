import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { describeWithEngine } from "../../support/engine.ts";

const script = fileURLToPath(new URL("./dist/processes.js", import.meta.url));

// A short variant of `node packages/limiter/test/processes/dynamodb/dist/processes.js --endpoint
// …`.
describeWithEngine("processes on one table", (engine) => {
  it(
    "processes never get more from one bucket than it held and earned, and it counts what they were answered",
    { timeout: 60_000 },
    async () => {
      const options = ["--endpoint", engine().endpointUrl, "--processes", "4", "--seconds", "3"];
      const { stdout } = await promisify(execFile)(process.execPath, [script, ...options]);
      console.log(stdout.trim());
      expect(stdout).toMatch(/^4 processes, 3 s: [1-9]\d* granted/);
    },
  );
});
