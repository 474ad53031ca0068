import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openRepository } from "zae-limiter/open";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { zaeLimiter, type Outcome } from "./command-line.ts";

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "zae-limiter-loadtest-"));
  const artillery = join(folder, "node_modules", "artillery");
  mkdirSync(artillery, { recursive: true });
  // Never started: no command of this file gets so far.
  writeFileSync(join(artillery, "package.json"), `{"version":"2.0.34","engines":{"node":">=20"}}`);
  vi.spyOn(process, "cwd").mockReturnValue(folder);
});
afterEach(() => {
  vi.restoreAllMocks();
  rmSync(folder, { recursive: true });
});

const run = (line: string): Promise<Outcome> =>
  zaeLimiter(line.replaceAll("DIR", folder), { open: openRepository });

it("lists every scenario with what it does", async () => {
  const { code, stdout } = await run("loadtest list");
  expect(code).toBe(0);
  for (const name of ["simple", "max-rps", "llm-gateway", "llm-production", "stress"])
    expect(stdout).toMatch(new RegExp(`^${name} .*[a-z]{3}`, "m"));
});

describe("before any load begins", () => {
  it.each([
    ["run smple --target memory:", "did you mean simple?"],
    ["run simple --target sqllite:./x.db", "Did you mean sqlite:?"],
    ["run simple --target memory: --rate 0", "whole number of at least 1"],
    ["run simple --target memory: --rate 999999999", "rate"],
    ["run simple --target memory: --duration 9999999", "durationSeconds"],
    ["run simple --target memory: --duration soon", "whole number"],
    ["run simple --target memory: --duration 0.5", "whole number"],
    ["run simple --target memory: --p99 0", "above 0"],
    ["run simple --target memory: --users 99999999999", "whole number"],
    ["run simple --target memory: --p99 fast", "It must be a number"],
    ["run simple --target memory: --output DIR", "is not empty"],
    ["run simple --target memory: --output DIR/node_modules/artillery/package.json", "not a dir"],
    [
      "max simple --target memory: --p99 1 --output DIR/node_modules/artillery/package.json/x",
      "not",
    ],
    ["run simple --target dynamodb://eu-west-1/t?endpoint=http://127.0.0.1:1", "127.0.0.1:1"],
    ["max smple --target memory: --p99 10", "did you mean simple?"],
    ["max simple --target memory:", "--p99"],
    ["max max-rps --target memory: --p99 10", "whatever the rate is"],
    ["verify DIR/none", "has no ledger"],
    ["verify DIR/node_modules", "has no ledger"],
    ["verify DIR --target sqlite:DIR/none.db", "does not exist"],
    ["lst", "Did you mean list?"],
  ])("%s exits 2 and says %s, in one sentence", { timeout: 60_000 }, async (line, hint) => {
    const { code, stdout, stderr } = await run(`loadtest ${line}`);
    expect(stderr).toContain(hint);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(readdirSync(folder)).toEqual(["node_modules"]);
  });

  it("says how to install Artillery where the project has none", async () => {
    rmSync(join(folder, "node_modules"), { recursive: true });
    const { code, stderr } = await run("loadtest run simple --target sqlite:DIR/x.db");
    expect(stderr).toContain("npm install --save-dev artillery");
    expect({ code, files: readdirSync(folder) }).toEqual({ code: 2, files: [] });
  });
});
