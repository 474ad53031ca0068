import { execFile } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { declareSurface } from "../../tools/declare-surface.mjs";

const ROOT = join(import.meta.dirname, "../..");
const WORKSHOP = join(ROOT, ".cache/declared");

describe("the public surface", async () => {
  const surface = await declareSurface();

  it("is what test/api declares; if it was meant to change, run npm run declare", () => {
    const files = readdirSync(import.meta.dirname).filter((name) =>
      /^declared.*\.d\.ts$/.test(name),
    );
    const declared = files.map((name) => [
      name,
      readFileSync(join(import.meta.dirname, name), "utf8"),
    ]);
    expect(Object.fromEntries(declared)).toEqual(surface);
  });

  it("compiles as it is declared", { timeout: 60_000 }, async () => {
    rmSync(WORKSHOP, { recursive: true, force: true });
    mkdirSync(WORKSHOP, { recursive: true });
    // The compiler checks no declarations when it does not check those of vendors.
    for (const [name, text] of Object.entries(surface))
      writeFileSync(join(WORKSHOP, name.replace(".d.ts", ".ts")), text);
    const compilerOptions = {
      composite: false,
      noEmit: true,
      skipLibCheck: true,
      moduleDetection: "legacy",
    };
    const config = { extends: "../../tsconfig.base.json", compilerOptions, include: ["*.ts"] };
    writeFileSync(join(WORKSHOP, "tsconfig.json"), JSON.stringify(config));
    const compiler = join(ROOT, "node_modules/typescript/bin/tsc");
    const { stdout } = await promisify(execFile)(process.execPath, [
      compiler,
      "-p",
      WORKSHOP,
    ]).catch((error: { readonly stdout: string }) => error);
    expect(stdout).toBe("");
  });
});
