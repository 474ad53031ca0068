import { existsSync, writeFileSync } from "node:fs";
import {
  InfrastructureNotFoundError,
  Limit,
  NamespaceNotFoundError,
  RateLimiter,
} from "zae-limiter";
import { SqliteRepository, type SqliteOptions } from "zae-limiter/sqlite";
import { expect, it } from "vitest";
import { closeLater, temporaryFile } from "../../../test/support/temporary-file.ts";

async function open(path: string, options?: SqliteOptions): Promise<SqliteRepository> {
  return closeLater(await SqliteRepository.open(path, options));
}

it("creates no file if only an existing one may be opened", async () => {
  const path = temporaryFile();
  await expect(open(path, { create: false })).rejects.toThrow(InfrastructureNotFoundError);
  expect(existsSync(path)).toBe(false);
  writeFileSync(path, "");
  await expect(open(path, { create: false })).rejects.toThrow(InfrastructureNotFoundError);
});

it("says how to create a missing file, as a command that names it", async () => {
  const path = temporaryFile();
  await expect(open(path, { create: false })).rejects.toThrow(
    `To create it: zae-limiter --repository "sqlite:${path}" system set-defaults rpm:100`,
  );
});

it("opens a registered namespace as usual", async () => {
  const path = temporaryFile();
  const { namespaceId } = await open(path);
  expect((await open(path, { create: false })).namespaceId).toBe(namespaceId);
});

it("registers no namespace, throws NamespaceNotFoundError for it, and still administers the others", async () => {
  const path = temporaryFile();
  await open(path, { namespace: "tenant" });
  const repository = await open(path, { create: false, namespace: "acme" });
  const request = {
    entityId: "key-1",
    resource: "gpt-4",
    consume: { rpm: 1 },
    limits: [Limit.perMinute("rpm", 5)],
  };
  await expect(repository.createEntity("key-1")).rejects.toThrow(NamespaceNotFoundError);
  const limiter = new RateLimiter({ repository });
  for (const call of [
    () => repository.getEntity("key-1"),
    () => limiter.acquire(request),
    () => limiter.available("key-1", "gpt-4"),
  ])
    await expect(call()).rejects.toThrow("Namespace acme does not exist.");
  expect((await repository.listNamespaces()).map(({ name }) => name)).toEqual(["tenant"]);
  const tenantId = (await repository.getNamespace("tenant"))!.namespaceId;
  await repository.deleteNamespace("tenant");
  expect(await repository.recoverNamespace(tenantId)).toBe("tenant");
  await repository.registerNamespace("second");
  expect((await repository.listNamespaces()).map(({ name }) => name)).toEqual(["second", "tenant"]);
  await expect(repository.getAuditEvents("$SYSTEM")).rejects.toThrow(NamespaceNotFoundError);
});
