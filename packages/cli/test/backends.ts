import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Repository } from "zae-limiter";
import { openRepository } from "zae-limiter/open";
import { ManualClock } from "zae-limiter/testing";
import { afterEach, beforeEach, describe } from "vitest";
import { readJson, zaeLimiter, type Outcome, type Setup } from "./command-line.ts";

/** The shared setup of the tests on one backend, new for each test. */
export interface World {
  readonly repository: Repository;
  readonly clock: ManualClock;
  readonly run: (line: string | readonly string[], more?: Setup) => Promise<Outcome>;
  readonly json: (line: string) => Promise<unknown>;
}

/**
 * Every verb works on any repository: on one that all calls share, and on a file that each call
 * opens and closes.
 */
export function onEveryBackend(body: (world: World) => void): void {
  describe.each(["memory", "sqlite"])("on %s", { timeout: 30_000 }, (backend) => {
    let folder: string;
    let setup: Setup;
    const world = {
      run: (line: string | readonly string[], more: Setup = {}) =>
        zaeLimiter(line, { ...setup, ...more }),
      json: (line: string) => readJson(line, setup),
    } as { -readonly [K in keyof World]: World[K] };

    beforeEach(async () => {
      folder = mkdtempSync(join(tmpdir(), "zae-limiter-cli-"));
      const clock = new ManualClock(Date.parse("2026-11-15T06:30:00Z"));
      const url = backend === "memory" ? "memory:" : `sqlite:${folder}/limits.db`;
      world.clock = clock;
      world.repository = await openRepository(url, { clock, configCacheTtlMs: 0 });
      setup = {
        nowMs: () => clock.now(),
        ...(backend === "memory"
          ? { repository: world.repository }
          : { open: (_url, options) => openRepository(url, { ...options, clock }) }),
      };
    });

    afterEach(async () => {
      await world.repository.close();
      rmSync(folder, { recursive: true });
    });

    body(world);
  });
}
