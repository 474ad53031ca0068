import { isAbsolute, join } from "node:path";
import { expect, it } from "vitest";
import { findUserFolder } from "./local-folder.ts";

it.each([
  ["linux", {}, "/me/.local/state/zae-limiter/local"],
  ["linux", { XDG_STATE_HOME: "/state" }, "/state/zae-limiter/local"],
  ["darwin", {}, "/me/Library/Application Support/zae-limiter/local"],
  ["win32", { LOCALAPPDATA: "/appdata" }, "/appdata/zae-limiter/local"],
  ["win32", {}, "/me/AppData/Local/zae-limiter/local"],
  ["darwin", { ZAEL_LOCAL_FOLDER: "/mine" }, "/mine"],
] as const)("on %s with %o, state is in %s", (platform, env, folder) => {
  expect(findUserFolder(env, { platform, home: "/me" })).toBe(join(folder));
});

it("is never relative, also where HOME is empty", () => {
  const before = process.env["HOME"];
  process.env["HOME"] = "";
  try {
    expect(isAbsolute(findUserFolder({}))).toBe(true);
  } finally {
    if (before === undefined) delete process.env["HOME"];
    else process.env["HOME"] = before;
  }
});
