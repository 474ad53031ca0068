import {
  chmodSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { open } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { UsageError } from "../src/exit.ts";
import { writeNewFile } from "../src/commands/support/new-file.ts";

/** Links of files need rights there, and files have no modes. */
const isWindows = process.platform === "win32";

let folder: string;
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), "zae-limiter-new-file-"))));
afterEach(() => rmSync(folder, { recursive: true }));

it("replaces a file whole: who has it open goes on reading what was there", async () => {
  const file = join(folder, "limits.yaml");
  writeFileSync(file, "old");
  const reader = await open(file);
  await writeNewFile(file, "new and longer", { force: true });
  expect(await reader.readFile("utf8")).toBe("old");
  await reader.close();
  expect(readFileSync(file, "utf8")).toBe("new and longer");
  expect(readdirSync(folder)).toEqual(["limits.yaml"]);
});

it("leaves nothing beside the file, also when the name is taken", async () => {
  const file = join(folder, "limits.yaml");
  await writeNewFile(file, "first", {});
  await expect(writeNewFile(file, "second", {})).rejects.toThrow(UsageError);
  expect(readFileSync(file, "utf8")).toBe("first");
  expect(readdirSync(folder)).toEqual(["limits.yaml"]);
});

it("of two at once, one gets the name", async () => {
  const file = join(folder, "limits.yaml");
  const outcomes = await Promise.allSettled(
    ["a", "b", "c", "d"].map((text) => writeNewFile(file, text.repeat(10_000), {})),
  );
  expect(outcomes.filter(({ status }) => status === "fulfilled").length).toBe(1);
  expect(readFileSync(file, "utf8")).toMatch(/^(a{10000}|b{10000}|c{10000}|d{10000})$/);
});

it.skipIf(isWindows)("keeps a link and the rights of the file that it leads to", async () => {
  const [file, name] = [join(folder, "limits.yaml"), join(folder, "link.yaml")];
  writeFileSync(file, "old");
  chmodSync(file, 0o600);
  symlinkSync(file, name);
  await writeNewFile(name, "new", { force: true });
  expect(readFileSync(file, "utf8")).toBe("new");
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(readdirSync(folder)).toEqual(["limits.yaml", "link.yaml"]);
});

it.skipIf(isWindows)("writes to what is not a plain file, and does not replace it", async () => {
  await writeNewFile("/dev/null", "nothing", { force: true });
  expect(statSync("/dev/null").isCharacterDevice()).toBe(true);
});
