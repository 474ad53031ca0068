import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, describe, expect, it } from "vitest";
import { startEngine } from "./engine-process.ts";
import { findEngine, type EngineProgram } from "./engine.ts";

const folder = mkdtempSync(join(tmpdir(), "zae-limiter-engine-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** A platform that dynoxide does not exist for. */
const ELSEWHERE = "plan9-mips";

function place(...path: readonly string[]): string {
  const file = join(folder, ...path);
  mkdirSync(join(file, ".."), { recursive: true });
  writeFileSync(file, "");
  return file;
}

describe("without an engine, one sentence says what to do", () => {
  it.each([
    [{}, /^There is no DynamoDB engine here: use Linux on x64, .* with --jar or ZAEL_LOCAL_JAR/],
    [{ engine: "dynoxide" }, /^The engine dynoxide is not here: use Linux on x64[^.]*\.$/],
    [{ engine: "dynamodb-local" }, /^DynamoDB Local is not here: .*--jar or ZAEL_LOCAL_JAR/],
    [{ jar: "/nowhere" }, /^There is no DynamoDBLocal\.jar at \/nowhere\.$/],
  ] as const)("%o", (choice, text) => {
    expect(() => findEngine(choice, {}, ELSEWHERE)).toThrow(text);
  });
});

describe("DynamoDB Local", () => {
  const packed = place("aws", "DynamoDBLocal.jar");
  place("aws", "DynamoDBLocal_lib", "sqlite4java.jar");
  const fetched = place("maven", "lib", "DynamoDBLocal-2.6.1.jar");

  it.each([
    ["its folder", join(folder, "aws"), packed, join(folder, "aws", "DynamoDBLocal_lib")],
    ["its jar", packed, packed, join(folder, "aws", "DynamoDBLocal_lib")],
    ["what Maven fetched", join(folder, "maven"), fetched, join(folder, "maven", "lib")],
  ])("is found by %s", (_name, jar, file, libraries) => {
    const engine = findEngine({ jar }, {}, ELSEWHERE);
    expect(engine).toMatchObject({ name: "dynamodb-local", command: "java" });
    const args = engine.args(8000, undefined);
    expect(args).toContain([file, join(libraries, "*")].join(delimiter));
    expect(args).toContain(`-Dsqlite4java.library.path=${libraries}`);
    expect(args).toContain("-inMemory");
    expect(engine.args(8000, "/data").join(" ")).toMatch(/-dbPath \/data$/);
  });

  it("is what a variable names, where nothing else is there", () => {
    const env = { ZAEL_LOCAL_JAR: packed };
    expect(findEngine({}, env, ELSEWHERE).name).toBe("dynamodb-local");
    expect(() => findEngine({ engine: "dynoxide" }, env, ELSEWHERE)).toThrow("not here");
  });

  it("is bound to this machine by a launcher of ours, never started by its own jar", () => {
    const args = findEngine({ jar: packed }, {}).args(8000, undefined);
    expect(args.some((word) => word.endsWith("java/LocalDynamoDb.java"))).toBe(true);
    expect(args).not.toContain("-jar");
  });
});

it("does not go on waiting for an engine that died", async () => {
  let looks = 0;
  const listening = /never/;
  listening.test = () => ((looks += 1), false);
  const program: EngineProgram = {
    name: "dynoxide",
    command: process.execPath,
    args: () => ["-e", "console.error('no data'); setTimeout(() => process.exit(3), 100)"],
    listening,
  };
  const { signal } = new AbortController();
  const start = { port: 0, data: undefined, onOutput: () => {}, onStarted: () => {}, signal };
  await expect(startEngine(program, start)).rejects.toThrow("could not be started: no data");
  const before = looks;
  await sleep(100);
  expect(looks).toBe(before);
});
