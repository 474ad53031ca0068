import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { VERSION } from "zae-limiter";
import { openRepository } from "zae-limiter/open";
import { MemoryRepository } from "zae-limiter/memory";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { readJson, zaeLimiter, type Setup } from "./command-line.ts";

let folder: string;
let here: Setup;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "zae-limiter-status-"));
  here = { open: openRepository, env: { ZAEL_REPOSITORY: `sqlite:${folder}/limits.db` } };
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true });
});

const DRIVER = /^(node:sqlite|better-sqlite3|libsql)$/;

describe("status", () => {
  it("shows repository, driver, namespace, versions and abilities", async () => {
    await zaeLimiter("namespace register default", here);
    expect(await readJson("status", here)).toEqual({
      repository: `sqlite:${folder}/limits.db`,
      reachable: true,
      driver: expect.stringMatching(DRIVER),
      namespace: "default",
      namespaceId: expect.any(String),
      dataVersion: expect.stringMatching(/^\d+$/),
      libraryVersion: VERSION,
      nodeVersion: process.version,
      capabilities: {
        auditLogging: true,
        usageSnapshots: true,
        infrastructureManagement: false,
        changeStreams: false,
        batchOperations: true,
      },
    });
    const { code, stdout } = await zaeLimiter("status", here);
    expect(code).toBe(0);
    expect(stdout).toContain("Reachable     yes\n");
    expect(stdout).toContain("Namespace     default\n");
    expect(stdout).toContain("Can do        audit, usage, batches\n");
    expect(stdout).toContain("Cannot do     manage infrastructure, change streams\n");
  });

  it("exits 1 and says why when the repository cannot be reached, and creates nothing", async () => {
    const { code, stdout, stderr } = await zaeLimiter("status", here);
    expect({ code, stderr }).toEqual({ code: 1, stderr: "" });
    expect(stdout).toContain(`Reachable    no: The database ${folder}/limits.db does not exist.`);
    expect(stdout).toContain(`zae-limiter  ${VERSION}\n`);
    const inJson = await zaeLimiter("status --json", here);
    expect(inJson.code).toBe(1);
    expect(JSON.parse(inJson.stdout)).toMatchObject({
      reachable: false,
      reason: expect.stringContaining("does not exist"),
    });
  });

  it("exits 1 when nothing listens", async () => {
    const url = "dynamodb://local/my-stack?endpoint=http://127.0.0.1:1";
    const { code, stdout } = await zaeLimiter(`status --repository ${url}`, here);
    expect(code).toBe(1);
    expect(stdout).toMatch(/^Reachable +no: .*127\.0\.0\.1:1/m);
  });

  it.each([
    ["a URL", (endpoint) => ["--repository", `dynamodb://eu-west-1/s?endpoint=${endpoint}`]],
    [
      "an encoded URL",
      (endpoint) => [
        "--repository",
        `dynamodb://eu-west-1/s?provisioning=never&endpoint=${encodeURIComponent(endpoint)}`,
      ],
    ],
    ["an option", (endpoint) => ["--endpoint-url", endpoint, "--region", "eu-west-1"]],
  ] as readonly (readonly [string, (endpoint: string) => readonly string[]])[])(
    "never shows the password of an endpoint that is named by %s",
    async (_, place) => {
      vi.stubEnv("AWS_ACCESS_KEY_ID", "x");
      vi.stubEnv("AWS_SECRET_ACCESS_KEY", "y");
      const words = place("http://someone:pass%24word@127.0.0.1:9");
      const verbs = ["status", "status --json", "entity list", "list", "no-verb"];
      for (const verb of [...verbs, "entity list --stack other"]) {
        const line = words.concat(verb.split(" "));
        const { stdout, stderr } = await zaeLimiter(line, {
          open: openRepository,
          env: { ZAEL_REPOSITORY: "" },
        });
        expect(stdout + stderr).not.toMatch(/someone|pass|word/);
        if (line.includes("status")) expect(stdout).toMatch(/eu-west-1\/.*\*\*\*.*127\.0\.0\.1/);
      }
    },
  );

  it("shows that a namespace does not exist, and registers none", async () => {
    await zaeLimiter("namespace register default", here);
    const { code, stdout } = await zaeLimiter("status -N other", here);
    expect(code).toBe(0);
    expect(stdout).toContain("Namespace     other (does not exist)\n");
    expect(await readJson("namespace list", here)).toMatchObject([{ name: "default" }]);
  });

  it("exits 2 for a command line that is written wrongly", async () => {
    for (const line of ["status --repository mongodb://x", "status -n my-stack"])
      expect((await zaeLimiter(line, here)).code).toBe(2);
  });

  it("is about the stack zae-limiter when no repository is named", async () => {
    expect(await urlOfStatus({})).toBe("dynamodb:///zae-limiter");
    expect(await urlOfStatus({ ZAEL_STACK: "mine" })).toBe("dynamodb:///mine");
  });

  it("shows the SDK's notice about Node, which other commands leave out", async () => {
    const setup = { repository: new MemoryRepository(), nodeNotice: "Node is old." };
    expect((await zaeLimiter("status", setup)).stdout).toContain("Notice       Node is old.\n");
    expect(await readJson("status", setup)).toMatchObject({ notice: "Node is old." });
    expect(await zaeLimiter("entity list", setup)).toMatchObject({
      stdout: expect.not.stringContaining("Node is old."),
      stderr: "",
    });
  });
});

/** What `status` opens. Without a region, nothing is asked of an account. */
async function urlOfStatus(env: Readonly<Record<string, string>>): Promise<string> {
  let opened = "";
  const open: typeof openRepository = async (url) => {
    opened = url;
    return new MemoryRepository();
  };
  for (const name of ["AWS_REGION", "AWS_DEFAULT_REGION"]) vi.stubEnv(name, "");
  vi.stubEnv("AWS_CONFIG_FILE", "/dev/null");
  await zaeLimiter("status", { open, env: { ZAEL_REPOSITORY: "", ...env } });
  return opened;
}
