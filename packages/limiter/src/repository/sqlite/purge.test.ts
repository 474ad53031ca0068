import { Limit, NamespaceNotFoundError, RateLimiter } from "zae-limiter";
import { SqliteRepository } from "zae-limiter/sqlite";
import { expect, it } from "vitest";
import {
  closeLater,
  otherConnection,
  temporaryFile,
} from "../../../test/support/temporary-file.ts";

it("removes what another process wrote to a namespace while it was purged, when it is purged again", async () => {
  const path = temporaryFile();
  const [admin, running] = [
    closeLater(await SqliteRepository.open(path)),
    closeLater(await SqliteRepository.open(path)),
  ];
  const namespaceId = await admin.registerNamespace("tenant");
  const tenant = await running.namespace("tenant");
  await tenant.setSystemDefaults([Limit.perMinute("rpm", 10)]);
  const limiter = new RateLimiter({ repository: tenant, onUnavailable: "allow" });
  const call = { entityId: "e", resource: "r", consume: { rpm: 1 } };
  await limiter.acquire(call, () => {});
  await admin.deleteNamespace("tenant");
  await admin.purgeNamespace(namespaceId);
  await expect(limiter.acquire(call)).rejects.toThrow(NamespaceNotFoundError);
  const late = await otherConnection(path);
  late.exec(
    `INSERT INTO usage (namespace_id, entity_id, resource, hour_ms, requests, counters, cascaded_requests, cascaded_counters) VALUES ('${namespaceId}', 'e', 'r', 0, 1, '{}', 0, '{}')`,
  );
  const progress: number[] = [];
  const onProgress = (deleted: number): void => void progress.push(deleted);
  await admin.purgeNamespace(namespaceId, { onProgress });
  expect(progress.at(-1)).toBe(1);
  progress.length = 0;
  await admin.purgeNamespace(namespaceId, { onProgress });
  expect(progress).toEqual([]);
});
