import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { Limit, type Repository, type RepositoryOptions } from "zae-limiter";
import { openRepository } from "zae-limiter/open";
import { ManualClock, seededRandom } from "zae-limiter/testing";
import { Ledger, RateLimiterSession, type MetricEmitter } from "artillery-engine-zae-limiter";

/** What a fake of Artillery's emitter has heard. */
export interface HeardEmitter extends MetricEmitter {
  readonly events: (readonly unknown[])[];
  /** The sum of a counter. */
  count(name: string): number;
}

export function hearMetrics(): HeardEmitter {
  const events: (readonly unknown[])[] = [];
  return {
    events,
    emit: (...event: readonly unknown[]) => events.push(event),
    count: (name) =>
      events
        .filter(([event, counted]) => event === "counter" && counted === name)
        .reduce((sum, [, , count]) => sum + Number(count), 0),
  };
}

export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "zae-loadtest-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Replaces methods of a repository. */
export function breakRepository(
  repository: Repository,
  broken: { readonly [Name in keyof Repository]?: unknown },
): Repository {
  return new Proxy(repository, {
    get(target, name) {
      const member: unknown = broken[name as keyof Repository] ?? Reflect.get(target, name, target);
      return typeof member === "function" ? member.bind(target) : member;
    },
  });
}

export interface LoadedStore {
  readonly folder: string;
  readonly repository: Repository;
  readonly clock: ManualClock;
}

/**
 * Some thousand calls of children and others, more than the limits allow, which settle half and
 * twice their estimates.
 */
export async function load(
  store: "memory" | "sqlite",
  alter: (repository: Repository) => Repository = (repository) => repository,
  options: RepositoryOptions = {},
): Promise<LoadedStore> {
  const folder = temporaryFolder();
  const clock = new ManualClock();
  const url = store === "memory" ? "memory:" : `sqlite:${join(folder, "limits.db")}`;
  const opened = await openRepository(url, { ...options, clock, namespace: "run" });
  onTestFinished(() => opened.close());
  await opened.setSystemDefaults([Limit.perMinute("rpm", 600), Limit.perMinute("tpm", 50_000)]);
  await opened.createEntity("parent");
  await opened.createEntity("child", { parentId: "parent", cascade: true });
  const repository = alter(opened);
  const ledger = new Ledger({ folder, repository, store });
  const session = new RateLimiterSession({ repository, emitter: hearMetrics(), ledger });
  const random = seededRandom(7);
  for (let round = 0; round < 400; round += 1) {
    await clock.advance(Math.floor(random() * 200));
    const entityId = ["child", "parent", "other"][round % 3]!;
    const consume = { rpm: 1, tpm: 1000 };
    const settle = { tpm: round % 2 === 0 ? 500 : 2000 };
    await Promise.all(
      [1, 2, 3].map(() => session.acquire({ entityId, resource: "gpt-4", consume, settle })),
    );
  }
  ledger.close();
  return { folder, repository: opened, clock };
}
