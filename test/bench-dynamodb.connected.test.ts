// `npm run bench:dynamodb -- --table …`, as it is built.
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { DynamoRepository } from "zae-limiter/dynamodb";
import { describeWithEngine, freshTableName } from "../packages/limiter/test/support/engine.ts";
import { openSdkClient } from "../bench/dynamodb/transports.ts";
import { afterEach, expect, it, vi } from "vitest";

const SCRIPT = fileURLToPath(new URL("../bench/dist/dynamodb.js", import.meta.url));

const LOCAL = "local us-east-1";

afterEach(() => void vi.unstubAllEnvs());

/** The code and what is on standard error. */
async function bench(...words: readonly string[]): Promise<readonly [number, string]> {
  return promisify(execFile)(process.execPath, [SCRIPT, "--quick", ...words]).then(
    () => [0, ""] as const,
    (error: { readonly code: number; readonly stderr: string }) =>
      [error.code, error.stderr.trim()] as const,
  );
}

it.each([
  ["--region eu-west-1", "--region needs --table: without it, the benchmark starts an engine."],
  ["--table x --seconds 61", '--seconds takes a number from 0.1 to 60, not "61".'],
  ["--table x --json /none/a.json", "--json names a file in a folder that does not exist"],
  ["--table x --endpoint there", "--endpoint takes an address such as http://127.0.0.1:8000"],
  ["--table x --against peer", "--against does not go with --table"],
  ["--table x --only alone", '--only does not know "alone"'],
])("%s is refused in one sentence", async (line, sentence) => {
  const [code, message] = await bench(...line.split(" "));
  expect([code, message.split("\n").length]).toEqual([1, 1]);
  expect(message).toContain(sentence);
});

it.each([
  ["the environment's, in the region that was named", "key", "eu-west-1", "key eu-west-1"],
  ["invented ones, if there are none and the engine is on this machine", "", undefined, LOCAL],
])("signs with credentials: %s", async (_, key, region, expected) => {
  for (const name of ["AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION"]) vi.stubEnv(name, "");
  vi.stubEnv("AWS_ACCESS_KEY_ID", key);
  vi.stubEnv("AWS_SECRET_ACCESS_KEY", key);
  const client = openSdkClient({ region, endpointUrl: "http://127.0.0.1:1" });
  const { accessKeyId } = await client.config.credentials();
  expect(`${accessKeyId} ${await client.config.region()}`).toBe(expected);
  client.destroy();
});

describeWithEngine("a benchmark on a table", (engine) => {
  const open = async (stack: string, create: boolean): Promise<DynamoRepository> =>
    DynamoRepository.open(undefined, {
      stack,
      endpointUrl: engine().endpointUrl,
      provisioning: create ? "table" : "never",
    });
  const place = (stack: string): readonly string[] => [
    "--table",
    stack,
    "--endpoint",
    engine().endpointUrl,
  ];

  it("refuses a table that does not exist, and creates it only when asked", async () => {
    const name = freshTableName();
    expect(await bench(...place(name))).toEqual([
      1,
      `Table ${name} does not exist, or is not ready. Create it first, or check its name and the region.`,
    ]);
    expect(await bench(...place(name), "--create", "--only", "hot", "--on", "lean")).toEqual([
      0,
      "",
    ]);
    await expect(open(name, false)).rejects.toThrow("exists");
  });

  it("measures every case, writes JSON, and leaves the table as it was", async () => {
    const name = freshTableName();
    const repository = await open(name, true);
    const folder = mkdtempSync(join(tmpdir(), "bench-"));
    const json = join(folder, "result.json");
    expect(await bench(...place(name), "--create")).toEqual([
      1,
      `Table ${name} exists, and would be deleted at the end: leave out --create.`,
    ]);
    expect(await bench(...place(name), "--json", json)).toEqual([0, ""]);
    const { table, results } = JSON.parse(readFileSync(json, "utf8")) as {
      readonly table: string;
      readonly results: readonly Readonly<Record<string, number>>[];
    };
    rmSync(folder, { recursive: true });
    expect([table, results.length]).toEqual([name, 14]);
    // The bare read, then one call after another.
    expect(results.slice(0, 2).map((each) => [each["readUnits"], each["writeUnits"]])).toEqual([
      [1, 0],
      [0, 1],
    ]);
    expect(results.every((each) => each["calls"]! > 0 && each["failed"] === 0)).toBe(true);
    expect((await repository.listNamespaces()).map((each) => each.name)).toEqual(["default"]);
    expect(await repository.listOrphanNamespaces()).toEqual([]);
    await repository.close();
  });

  it("removes what it wrote when it is interrupted", async () => {
    const name = freshTableName();
    const repository = await open(name, true);
    const child = spawn(process.execPath, [SCRIPT, ...place(name), "--only", "hot"]);
    const ended = once(child, "exit");
    while ((await repository.listNamespaces()).length === 1);
    child.kill("SIGINT");
    expect(await ended).toEqual([130, null]);
    expect(await repository.listNamespaces()).toHaveLength(1);
    expect(await repository.listOrphanNamespaces()).toEqual([]);
    await repository.close();
  });
});
