// Processes of the built program that apply manifests to one file: killed, stopped, two at once.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Limit, RateLimiterUnavailable } from "zae-limiter";
import { SqliteRepository } from "zae-limiter/sqlite";
import { afterEach, beforeEach, describe } from "vitest";
import { applyingProcesses } from "./limits-processes.ts";

describe("on a SQLite file", () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "zae-limiter-cli-"));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  applyingProcesses(() => `sqlite:${folder}/limits.db`, {
    entities: 500,
    seeds: 1,
    isFree,
  });
});

async function isFree(url: string): Promise<boolean> {
  const path = url.slice("sqlite:".length);
  const repository = await SqliteRepository.open(path, { create: false, lockTimeoutMs: 50 });
  try {
    await repository.setResourceDefaults("unlocked", [Limit.perMinute("rpm", 1)]);
    return true;
  } catch (error) {
    if (error instanceof RateLimiterUnavailable) return false;
    throw error;
  } finally {
    await repository.close();
  }
}
