import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { buildArtilleryEnvironment } from "./environment.ts";
import { findArtillery, findEngineFolder } from "./find-artillery.ts";

let folder: string;

beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "zae-limiter-artillery-")));
});
afterEach(() => rmSync(folder, { recursive: true }));

function install(name: string, manifest: object): string {
  const home = join(folder, "node_modules", name);
  mkdirSync(home, { recursive: true });
  writeFileSync(join(home, "package.json"), JSON.stringify(manifest));
  return home;
}

describe("Artillery", () => {
  const MANIFEST = { version: "2.0.34", engines: { node: ">= 22.18.0" } };

  it("is found in the project above a folder", () => {
    const home = install("artillery", MANIFEST);
    const inside = join(folder, "packages", "api");
    const found = { version: "2.0.34", program: join(home, "bin", "run") };
    for (const version of ["22.18.0", "22.20.1", "24.0.0"])
      expect(findArtillery(inside, version)).toEqual(found);
  });

  it("that is missing is one sentence with the line that installs it", () => {
    expect(() => findArtillery(folder)).toThrow(
      "Install it with `PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1 npm install --save-dev artillery`; " +
        "it needs Node 22.18 or newer.",
    );
  });

  it.each(["20.20.2", "22.17.9", "v22.9.0"])("does not run on Node %s, and says so", (version) => {
    install("artillery", MANIFEST);
    expect(() => findArtillery(folder, version)).toThrow(
      `Artillery 2.0.34 needs Node 22.18 or newer, but this is Node ${version}.`,
    );
  });

  it("finds the engine in a folder above this package", () => {
    const home = install("artillery-engine-zae-limiter", {});
    expect(findEngineFolder(join(home, "dist", "run"))).toBe(join(folder, "node_modules"));
    expect(() => findEngineFolder(tmpdir())).toThrow("npm");
  });
});

it("no variable makes Artillery send results anywhere", () => {
  const env = buildArtilleryEnvironment(
    { target: "memory:", ledger: "/ledger", engineFolder: "/modules" },
    {
      ARTILLERY_CLOUD_API_KEY: "key",
      ARTILLERY_DISABLE_TELEMETRY: "false",
      ARTILLERY_PLUGINS: '{"publish-metrics":[]}',
      WORKER_ID: "1",
      CUSTOM_REPORTERS: "other",
      NODE_PATH: "/mine",
      AWS_REGION: "eu-west-1",
    },
  );
  expect(env).toEqual({
    ARTILLERY_DISABLE_TELEMETRY: "true",
    CUSTOM_REPORTERS: expect.stringMatching(/artillery-reporter\.js$/),
    NODE_PATH: ["/modules", "/mine"].join(delimiter),
    AWS_REGION: "eu-west-1",
    ZAEL_LOADTEST_TARGET: "memory:",
    ZAEL_LOADTEST_LEDGER: "/ledger",
  });
});
