import { spawnSync } from "node:child_process";
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { folderArchive } from "./folder-archive.ts";

const NAME = "audit/namespace=a/year=2026/month=01/day=15/01A-0.jsonl.gz";

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), "archive-"));
  onTestFinished(() => {
    chmodSync(path, 0o700);
    rmSync(path, { recursive: true, force: true });
  });
  return path;
}

/** Mounts a small file system on a folder, if that is allowed here. */
function mounted(path: string, options: string): boolean {
  const isMounted =
    spawnSync("mount", ["-t", "tmpfs", "-o", options, "zae-limiter", path]).status === 0;
  if (isMounted) onTestFinished(() => void spawnSync("umount", [path]));
  return isMounted;
}

it("creates folders, stores an object whole, and replaces it by its like", async () => {
  const path = folder();
  const archive = folderArchive(join(path, "new/archive"));
  for (let time = 1; time <= 2; time += 1) {
    await archive.store(NAME, Buffer.from("content"));
    expect(readFileSync(join(path, "new/archive", NAME), "utf8")).toBe("content");
  }
  // Nothing that was written aside is left.
  expect(readdirSync(join(path, "new/archive", NAME, ".."))).toHaveLength(1);
});

it("stores one object for several that store it at the same time", async () => {
  const path = folder();
  const archive = folderArchive(path);
  await Promise.all(Array.from({ length: 8 }, () => archive.store(NAME, Buffer.from("content"))));
  expect(readdirSync(join(path, NAME, ".."))).toHaveLength(1);
  expect(readFileSync(join(path, NAME), "utf8")).toBe("content");
});

it("says that the disk is full, leaves no part of an object, and stores it when there is room", async ({
  skip,
}) => {
  const path = folder();
  skip(!mounted(path, "size=64k"), "mounting is not allowed here");
  const filling = join(path, "filling");
  writeFileSync(filling, new Uint8Array(40_000));
  const archive = folderArchive(path);
  await expect(archive.store(NAME, new Uint8Array(40_000))).rejects.toMatchObject({
    code: "ERR_LIMITER_ARCHIVE_FULL",
    message: expect.stringMatching(/^The archive .* is full: make room .*\.$/),
  });
  expect(readdirSync(join(path, NAME, ".."))).toEqual([]);
  rmSync(filling);
  await archive.store(NAME, new Uint8Array(40_000));
  expect(readFileSync(join(path, NAME))).toHaveLength(40_000);
});

it("says that a folder may not be written", async ({ skip }) => {
  const path = folder();
  const isRoot = process.getuid?.() === 0;
  // The rights of a folder do not bind root; a file system that is mounted for reading does.
  if (isRoot) skip(!mounted(path, "ro"), "mounting is not allowed here");
  else chmodSync(path, 0o500);
  await expect(folderArchive(path).store(NAME, new Uint8Array(1))).rejects.toMatchObject({
    code: "ERR_LIMITER_PERMISSION_DENIED",
    message: expect.stringMatching(/ may not be written \(E\w+\): allow this user /),
  });
});

it("gives up where no folder can be made", async ({ skip }) => {
  skip(process.platform !== "linux", "only Linux has /proc");
  await expect(folderArchive("/proc/archive").store(NAME, new Uint8Array(1))).rejects.toMatchObject(
    {
      code: "ERR_LIMITER_ARCHIVE_UNAVAILABLE",
      message: expect.stringContaining("ENOENT"),
    },
  );
});

it("says what else is wrong, and refuses what is not a path", async () => {
  const path = folder();
  mkdirSync(join(path, NAME), { recursive: true });
  await expect(folderArchive(path).store(NAME, new Uint8Array(1))).rejects.toMatchObject({
    code: "ERR_LIMITER_ARCHIVE_UNAVAILABLE",
    message: expect.stringContaining("EISDIR"),
  });
  expect(readdirSync(join(path, NAME, ".."))).toHaveLength(1);
  expect(() => folderArchive("")).toThrow("must be the path of a folder");
});
