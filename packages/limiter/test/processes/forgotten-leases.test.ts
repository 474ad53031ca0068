import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";

const dist = fileURLToPath(new URL("../../dist/", import.meta.url));
const DEADLINE_MS = 30_000;

const BEGIN = `
  const { Limit, RateLimiter } = await import(process.argv[1] + "index.js");
  const { MemoryRepository } = await import(process.argv[1] + "repository/memory/index.js");
  const repository = new MemoryRepository();
  await repository.setSystemDefaults([Limit.perDay("rpd", 1_000_000)]);
  const limiter = new RateLimiter({ repository });
  const request = { entityId: "key-1", resource: "gpt-4", consume: { rpd: 1 } };
  process.on("warning", ({ code, message }) => console.log(code + " " + message));
  async function collect() {
    for (let turn = 0; turn < 20; turn += 1) {
      await new Promise((resolve) => setImmediate(resolve));
      gc();
    }
  }`;

/** What a process that runs a script was warned of. */
async function collectWarnings(script: string, debug?: string): Promise<readonly string[]> {
  const { NODE_DEBUG: _, ...environment } = process.env;
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ["--expose-gc", "--input-type=module", "-e", `${BEGIN}${script}`, dist],
    {
      timeout: DEADLINE_MS,
      env: debug === undefined ? environment : { ...environment, NODE_DEBUG: debug },
    },
  );
  return stdout.split(/^(?=WARN_)/m).filter((warning) => warning !== "");
}

describe("a process that forgets a lease", { timeout: 2 * DEADLINE_MS }, () => {
  it("is warned once, with what to do", async () => {
    const warnings = await collectWarnings(`
      for (let count = 0; count < 5; count += 1) await limiter.acquire(request);
      await collect();
      await limiter.acquire(request);
      await collect();`);
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toMatch(/^WARN_LIMITER_LEASE_NOT_ENDED A lease of key-1 on gpt-4 was/);
    expect(warnings[0]).toContain("Set NODE_DEBUG=zae-limiter");
    expect(warnings[0]).not.toContain(" at ");
  });

  it.each(["acquire", "tryAcquire"])(
    "is told where %s was called, if NODE_DEBUG asks for it",
    async (method) => {
      const warnings = await collectWarnings(
        `
        async function forgetful() { await limiter.${method}(request); }
        await forgetful();
        await collect();`,
        "http, ZAE-Limiter",
      );
      expect(warnings).toHaveLength(1);
      expect(warnings[0]).toMatch(/The lease was acquired here:\n {4}at (?:async )?forgetful/);
    },
  );

  it("is warned among many that it ends, by a sample", async () => {
    const warnings = await collectWarnings(`
      for (let count = 0; count < 1000; count += 1) await (await limiter.acquire(request)).commit();
      await collect();
      for (let count = 0; count < 128; count += 1) await limiter.acquire(request);
      await collect();`);
    expect(warnings).toHaveLength(1);
  });

  it("is not warned of leases that have ended, whichever way, or are still held", async () => {
    const warnings = await collectWarnings(`
      const held = [];
      for (let count = 0; count < 50; count += 1) {
        await (await limiter.acquire(request)).commit();
        await (await limiter.tryAcquire(request)).lease.rollback();
        await (await limiter.acquire(request))[Symbol.asyncDispose]();
        await limiter.acquire(request, () => {});
        await limiter.acquire(request, () => Promise.reject(new Error("failed"))).catch(() => {});
        held.push(await limiter.acquire(request));
      }
      await collect();
      console.error(held.length);`);
    expect(warnings).toEqual([]);
  });
});
