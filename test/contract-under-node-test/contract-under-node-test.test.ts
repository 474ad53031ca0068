import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";

const script = fileURLToPath(new URL("memory.contract.mjs", import.meta.url));
const built = fileURLToPath(new URL("../../packages/contract/dist/index.js", import.meta.url));

// `npm test` builds first; a bare `vitest run` on a fresh clone has no build to prove anything
// about.
it.skipIf(!existsSync(built))(
  "the contract runs under node:test, from the built package",
  { timeout: 60_000 },
  () => {
    // Without this, node would take itself for a child of the outer runner.
    const { NODE_TEST_CONTEXT: _, ...env } = process.env;
    const report = execFileSync(process.execPath, ["--test", "--test-reporter=tap", script], {
      encoding: "utf8",
      env,
    });
    expect(report).toMatch(/^# fail 0$/m);
    expect(Number(/^# pass (\d+)$/m.exec(report)?.[1])).toBeGreaterThan(200);
  },
);
