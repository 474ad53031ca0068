import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeEach, expect, it } from "vitest";
import { toOutcome, type Outcome } from "./project.ts";

/*
 * The library's command in layouts that npm does not make. package.test.ts has it with the real
 * command line, as npm installs both.
 */
const bin = fileURLToPath(new URL("../../packages/limiter/bin", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "bin-"));
const store = join(folder, "store/node_modules/zae-limiter/bin");
const project = join(folder, "project");

/** Stands for the command line: says what it was called with, and fails. */
const COMMAND_LINE = "console.log(process.argv.slice(2).join()); process.exitCode = 7;";

beforeEach(() => {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(project, { recursive: true });
  cpSync(bin, store, { recursive: true });
  writeFileSync(join(store, "../package.json"), '{ "type": "module" }');
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

it("says what to install, in one line, where there is no command line", async () => {
  const { code, stdout, stderr } = await start("--version");
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  expect(stderr).toMatch(/^.*npm install @zae-limiter\/cli\n$/);
});

it.each([
  ["beside it", join(folder, "store")],
  ["in the project, where a package manager keeps both apart", project],
])("starts the command line that is %s, with its arguments and its exit code", async (_, place) => {
  install(place, '{ "type": "module" }');
  expect(await start("entity", "show")).toEqual({ code: 7, stdout: "entity,show\n", stderr: "" });
});

it("does not take a command line that cannot be loaded for a missing one", async () => {
  install(project, '{ "type": "module", "exports": {} }');
  const { code, stderr } = await start("--version");
  expect(code).not.toBe(0);
  expect(stderr).toContain("ERR_PACKAGE_PATH_NOT_EXPORTED");
});

function install(place: string, manifest: string): void {
  const path = join(place, "node_modules/@zae-limiter/cli");
  mkdirSync(join(path, "bin"), { recursive: true });
  writeFileSync(join(path, "package.json"), manifest);
  writeFileSync(join(path, "bin/zae-limiter.js"), COMMAND_LINE);
}

function start(...args: readonly string[]): Promise<Outcome> {
  return toOutcome(process.execPath, [join(store, "zae-limiter.js"), ...args], { cwd: project });
}
