import { execFile, spawnSync } from "node:child_process";
import { chmodSync, cpSync, existsSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { SqliteRepository } from "zae-limiter/sqlite";
import { expect, it } from "vitest";
import { temporaryFile } from "../../support/temporary-file.ts";

// Short variants of what CI runs at length: `node
// packages/limiter/test/processes/sqlite/dist/processes.js` and `…/crashes.js`.

const folder = fileURLToPath(new URL("./dist/", import.meta.url));
const library = fileURLToPath(new URL("../../../dist/", import.meta.url));

async function run(script: string, ...options: readonly string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(process.execPath, [
    join(folder, script),
    ...options,
  ]);
  return stdout;
}

it("two processes on one file keep all promises", async () => {
  expect(await run("processes.js", "--seconds", "2", "--processes", "2")).toMatch(
    /^2 processes, 2 s: \d+ granted/,
  );
}, 30_000);

it("a file is created once when several processes open it together", async () => {
  const script = `
    const { SqliteRepository } = await import(process.argv[1]);
    const repository = await SqliteRepository.open(process.argv[2]);
    console.log(repository.namespaceId);
    await repository.close();`;
  for (let round = 0; round < 3; round += 1) {
    const values = [join(library, "repository/sqlite/index.js"), temporaryFile()];
    const opening = Array.from({ length: 4 }, () =>
      promisify(execFile)(process.execPath, ["--input-type=module", "-e", script, ...values]),
    );
    const printed = await Promise.all(opening);
    expect(new Set(printed.map(({ stdout }) => stdout)).size).toBe(1);
    expect(printed[0]!.stdout).toMatch(/^[\w-]{11}\n$/);
  }
}, 30_000);

it("nothing that was answered is lost when processes are killed at any moment", async () => {
  expect(await run("crashes.js", "--kills", "4")).toMatch(
    /^killed [1-9]\d* in-transaction, [1-9]\d* in-commit, [1-9]\d* between/,
  );
}, 120_000);

it("a file and a folder that may not be written are denied permission", async ({ skip }) => {
  const path = temporaryFile();
  await (await SqliteRepository.open(path)).close();
  const script = `
    const { SqliteRepository } = await import(process.argv[1]);
    await SqliteRepository.open(process.argv[2]).then(() => console.log("opened"), (error) => console.log(error.code));`;
  // The rights of a file do not bind root, so another user opens it.
  const otherUser = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};
  const attempt = (): string =>
    spawnSync(
      process.execPath,
      ["--input-type=module", "-e", script, join(library, "repository/sqlite/index.js"), path],
      {
        encoding: "utf8",
        ...otherUser,
      },
    ).stdout.trim();
  chmodSync(dirname(path), 0o777);
  chmodSync(path, 0o666);
  skip(attempt() !== "opened", "other users may not read the library here");
  chmodSync(path, 0o444);
  expect(attempt()).toBe("ERR_LIMITER_PERMISSION_DENIED");
  chmodSync(path, 0o666);
  chmodSync(dirname(path), 0o555);
  expect(attempt()).toBe("ERR_LIMITER_PERMISSION_DENIED");
});

it("the runtime's own driver prints no warning", () => {
  const path = temporaryFile();
  const script = `const { SqliteRepository } = await import(process.argv[1]); await (await SqliteRepository.open(process.argv[2])).close();`;
  const values = [join(library, "repository/sqlite/index.js"), path];
  const { stdout, stderr } = spawnSync(
    process.execPath,
    ["--input-type=module", "-e", script, ...values],
    { encoding: "utf8" },
  );
  expect({ stdout, stderr }).toEqual({ stdout: "", stderr: "" });
  expect(existsSync(path)).toBe(true);
});

it.skipIf(process.getBuiltinModule("node:sqlite") !== undefined)(
  "the error without a driver says what to install",
  () => {
    const path = temporaryFile();
    const alone = join(dirname(path), "library");
    mkdirSync(alone);
    cpSync(library, join(alone, "dist"), { recursive: true });
    cpSync(join(library, "../package.json"), join(alone, "package.json"));
    const script = `
    const { SqliteRepository } = await import(process.argv[1]);
    await SqliteRepository.open(process.argv[2]).catch((error) => console.log(error.code, error.message));`;
    const values = [join(alone, "dist/repository/sqlite/index.js"), path];
    const { stdout } = spawnSync(
      process.execPath,
      ["--input-type=module", "-e", script, ...values],
      { encoding: "utf8" },
    );
    expect(stdout).toMatch(
      /^ERR_LIMITER_DRIVER_MISSING No SQLite driver.*npm install better-sqlite3.*libsql/,
    );
    expect(existsSync(path)).toBe(false);
  },
);
