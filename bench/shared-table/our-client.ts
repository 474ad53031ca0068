import { setTimeout as sleep } from "node:timers/promises";
import { RateLimiter, RateLimitExceeded } from "zae-limiter";
import { runAggregator } from "zae-limiter/aggregator";
import type { DynamoRepository } from "zae-limiter/dynamodb";
import type { Ends, Load } from "./python-client.ts";

const LIMIT = "calls";
const AFTER_REFUSAL_MS = 5;

/** Makes calls and counts how they ended, as the Python driver does. */
export async function hammer(repository: DynamoRepository, load: Load): Promise<Ends> {
  const limiter = new RateLimiter({ repository });
  const ends: Record<string, number> = {};
  const count = (end: string): void => void (ends[end] = (ends[end] ?? 0) + 1);
  const untilMs = performance.now() + (load.seconds ?? 0) * 1000;
  let started = 0;
  const goesOn = (): boolean =>
    load.calls === undefined ? performance.now() < untilMs : started < load.calls;
  const caller = async (): Promise<void> => {
    while (goesOn()) {
      started += 1;
      try {
        const { entity: entityId, resource } = load;
        const lease = await limiter.acquire({ entityId, resource, consume: { [LIMIT]: 1 } });
        await lease.commit();
        count("granted");
      } catch (error) {
        if (error instanceof RateLimitExceeded) {
          count("refused");
          await sleep(AFTER_REFUSAL_MS);
          continue;
        }
        count("failed");
        count(toMessage(error).slice(0, 200));
      }
    }
  };
  await Promise.all(Array.from({ length: load.callers }, caller));
  return ends;
}

/** What we find of everything that the Python driver looks for, too. */
export async function read(
  repository: DynamoRepository,
  { project, key, resource }: { readonly project: string; readonly key: string; resource: string },
): Promise<Record<string, string>> {
  const limiter = new RateLimiter({ repository });
  const readings: Record<string, () => Promise<unknown>> = {
    entity: () => repository.getEntity(key),
    children: () => repository.getChildren(project),
    "limits of the entity": () => repository.getLimits(key, { resource }),
    "limits of the resource": () => repository.getResourceDefaults(resource),
    "resources with limits": () => repository.listResourcesWithDefaults(),
    "resources with limits of entities": () => repository.listResourcesWithEntityConfigs(),
    "audit events": () => repository.getAuditEvents(key),
    "buckets of the entity": () => repository.getBuckets(key),
    available: () => limiter.available(key, resource),
    usage: async () => {
      const { stackName: stack, region, endpointUrl } = repository;
      const place = endpointUrl === undefined ? { region } : { region, endpointUrl };
      const report = await runAggregator({ stack, ...place, once: true });
      const { total } = await repository.getUsageSummary({ entityId: key });
      return { counted: report.counted, skipped: report.skipped, total };
    },
  };
  const found: Record<string, string> = {};
  for (const [what, reading] of Object.entries(readings))
    found[what] = await reading().then((value) => JSON.stringify(value), toMessage);
  return found;
}

/** The name of an error and what it says. */
export function toMessage(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
}
