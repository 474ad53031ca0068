// The built program when the disk that its output goes to is full.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, openSync, closeSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";

const PROGRAM = fileURLToPath(new URL("../bin/zae-limiter.js", import.meta.url));
/** Every write to it fails as on a full disk. Linux only. */
const FULL = "/dev/full";

it.skipIf(!existsSync(FULL)).each([
  ["one text", ["--help"]],
  ["a result", ["--repository", "memory:", "status"]],
  ["JSON", ["--repository", "memory:", "status", "--json"]],
  ["a file of its own", ["cfn-template", "--output", "-"]],
])("says that it could not write %s, and exits 1", { timeout: 60_000 }, async (_, words) => {
  const full = openSync(FULL, "w");
  const child = spawn(process.execPath, [PROGRAM, ...words], { stdio: ["ignore", full, "pipe"] });
  let text = "";
  child.stderr!.on("data", (chunk) => (text += String(chunk)));
  const [code] = (await once(child, "close")) as readonly unknown[];
  closeSync(full);
  const message =
    "The output could not be written: ENOSPC: no space left on device, write. The changes of the " +
    "command remain.";
  expect(code).toBe(1);
  if (words.includes("--json"))
    expect(JSON.parse(text)).toEqual({ error: { code: "ERR_CLI_OUTPUT", message } });
  else expect(text).toBe(`error: ${message}\n`);
});
