import { spawnSync } from "node:child_process";
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { PidFile, type Ownership, type TakeOutcome } from "./pid-file.ts";
import { identifyProcess } from "./process.ts";

interface Named extends Ownership {
  readonly name: string;
}

const owner = identifyProcess(process.pid)!;
const dead = { pid: spawnSync(process.execPath, ["-e", ""]).pid, start: "long ago" };
let parent: string;
let folder: string;

beforeEach(() => {
  parent = mkdtempSync(join(tmpdir(), "zae-limiter-pid-"));
  folder = join(parent, "folder");
});

afterEach(() => rmSync(parent, { recursive: true }));

const take = (name: string): Promise<TakeOutcome<Named>> =>
  new PidFile<Named>(folder).take({ owner, name });

it("gives a folder to one of many processes at once, and tells the others which", async () => {
  await new PidFile<Named>(folder).take({ owner: dead, name: "dead" });
  const outcomes = await Promise.all(["a", "b", "c", "d"].map(take));
  expect(outcomes.filter(({ taken }) => taken)).toMatchObject([{ before: { name: "dead" } }]);
  const { name } = new PidFile<Named>(folder).read()!;
  const others = outcomes.flatMap((outcome) => (outcome.taken ? [] : [outcome.ownedBy.name]));
  expect(others).toEqual([name, name, name]);
  expect(readdirSync(folder)).toEqual(["pid.json"]);
});

it("gives a folder again when its owner has ended, not before", async () => {
  await take("first");
  expect(await take("second")).toMatchObject({ taken: false, ownedBy: { name: "first" } });
  new PidFile<Named>(folder).write({ owner, name: "first", ended: true });
  expect(await take("third")).toMatchObject({ taken: true, before: { name: "first" } });
});

it("does not mistake another process that has got the pid of the owner", async () => {
  await new PidFile<Named>(folder).take({ owner: { ...owner, start: "earlier" }, name: "old" });
  expect(await take("new")).toMatchObject({ taken: true, before: { name: "old" } });
});

it("breaks the lock of a process that died, and one that was never written", async () => {
  await take("first");
  const lock = join(folder, "lock");
  for (const holder of [dead, { ...owner, start: "earlier" }]) {
    writeFileSync(lock, JSON.stringify(holder));
    expect(await take("next")).toMatchObject({ taken: false });
  }
  writeFileSync(lock, "");
  utimesSync(lock, 0, 0);
  expect(await take("next")).toMatchObject({ taken: false });
});

it("waits for the lock of a process that runs", async () => {
  await take("first");
  const lock = join(folder, "lock");
  writeFileSync(lock, JSON.stringify(owner));
  const second = take("second");
  await expect(Promise.race([second, Promise.resolve("waits")])).resolves.toBe("waits");
  rmSync(lock);
  expect(await second).toMatchObject({ taken: false });
});

it("fails for a folder that cannot be created", async () => {
  const pidFile = new PidFile<Named>(join(process.execPath, "x"));
  await expect(pidFile.take({ owner, name: "a" })).rejects.toThrow("ENOTDIR");
  expect(pidFile.read()).toBeUndefined();
});

it.each(["{}", "null", '{ "owner": 4242 }', '{ "owner": { "pid": 4242 } }'])(
  "neither trusts nor replaces a file of another program: %s",
  async (text) => {
    mkdirSync(folder);
    writeFileSync(join(folder, "pid.json"), text);
    expect(() => new PidFile<Named>(folder).read()).toThrow("was not written by zae-limiter");
    await expect(take("mine")).rejects.toThrow("was not written by zae-limiter");
    expect(readFileSync(join(folder, "pid.json"), "utf8")).toBe(text);
    expect(readdirSync(folder)).toEqual(["pid.json"]);
  },
);
