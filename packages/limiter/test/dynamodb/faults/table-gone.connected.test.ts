/*
 * A table that disappears under a repository which is open: the first deployment of its stack was
 * rolled back, or it was deleted. When it is there again, it is another table: empty, or with
 * namespaces that have other ids.
 */
import { expect, it, vi } from "vitest";
import {
  InfrastructureNotFoundError,
  Limit,
  NamespaceNotFoundError,
  RateLimiter,
  type Repository,
} from "zae-limiter";
import { DynamoRepository, type DynamoOptions } from "zae-limiter/dynamodb";
import { call, take } from "../../support/calls.ts";
import { describeWithEngine, freshTableName } from "../../support/engine.ts";

const LIMITS = [Limit.perDay("rpm", 100)];

describeWithEngine("a table that disappears under an open repository", (engine) => {
  const place = (): DynamoOptions & { readonly stack: string } => ({
    stack: freshTableName(),
    endpointUrl: engine().endpointUrl,
    stream: false,
  });

  it("says so, and is found again without a restart, whichever process made it", async () => {
    const options = place();
    await using repository = await DynamoRepository.open("app", options);
    await repository.setSystemDefaults(LIMITS);
    await repository.registerNamespace("tenant");
    const tenant = await repository.namespace("tenant");
    await tenant.setSystemDefaults(LIMITS);
    const limiters = [repository, tenant].map((each) => new RateLimiter({ repository: each }));
    for (const limiter of limiters) await take(limiter, { rpm: 60 });
    const lease = await limiters[0]!.acquire(call({ rpm: 1 }));
    const before = [repository.namespaceId, tenant.namespaceId];

    await repository.deleteTable();
    for (const each of [repository, tenant]) await expectGone(each, options.stack);

    await using deployer = await DynamoRepository.open("app", options);
    await deployer.setSystemDefaults(LIMITS);
    // All at once, and tokens taken before have nowhere to go back to.
    const granted = await Promise.all(
      Array.from({ length: 8 }, () => limiters[0]!.acquire(call({ rpm: 10 }))),
    );
    expect(granted.map(({ degraded }) => degraded)).toEqual(granted.map(() => false));
    await lease.rollback();
    expect(repository.namespaceId).toBe(deployer.namespaceId);
    expect(await new RateLimiter({ repository: deployer }).available("e", "r")).toEqual({
      rpm: 20,
    });

    // One that has not been registered again is missing, until it is.
    await expect(limiters[1]!.acquire(call({ rpm: 1 }))).rejects.toThrow(NamespaceNotFoundError);
    await deployer.registerNamespace("tenant");
    await (await deployer.namespace("tenant")).setSystemDefaults(LIMITS);
    await take(limiters[1]!, { rpm: 60 });
    expect(await limiters[1]!.available("e", "r")).toEqual({ rpm: 40 });
    expect(before).not.toContain(repository.namespaceId);
    expect(before).not.toContain(tenant.namespaceId);
  });

  it("is made usable again by a repository that may register its namespace", async () => {
    const options = place();
    await using repository = await DynamoRepository.open("app", options);
    await repository.deleteTable();
    await expectGone(repository, options.stack);
    await repository.createTable();
    await repository.setSystemDefaults(LIMITS);
    await take(new RateLimiter({ repository }), { rpm: 1 });
    expect((await repository.listNamespaces()).map(({ name }) => name)).toEqual(["app"]);
    // It has a version record, without which a table that has namespaces would not be opened.
    await using found = await DynamoRepository.open("app", { ...options, provisioning: "never" });
    expect(found.namespaceId).toBe(repository.namespaceId);
  });

  it("is not made again by calls, nor is a namespace by those that may not", async () => {
    const options = place();
    await using first = await DynamoRepository.open("app", options);
    await using looking = await DynamoRepository.open("app", { ...options, provisioning: "never" });
    await first.deleteTable();
    for (let attempt = 0; attempt < 2; attempt += 1) await expectGone(looking, options.stack);
    expect(await first.ping()).toBe(false);
    await using deployer = await DynamoRepository.open("deployer", options);
    await expect(looking.setSystemDefaults(LIMITS)).rejects.toThrow(NamespaceNotFoundError);
    await deployer.registerNamespace("app");
    await looking.setSystemDefaults(LIMITS);
  });

  it("costs a repository whose table is there nothing, and one that is back one look", async () => {
    const options = place();
    await using repository = await DynamoRepository.open("app", options);
    await repository.setSystemDefaults(LIMITS);
    const limiter = new RateLimiter({ repository });
    await take(limiter, { rpm: 1 });
    const countRequests = async (): Promise<number> => {
      const { requests } = repository.getStatistics();
      await take(limiter, { rpm: 1 });
      return repository.getStatistics().requests - requests;
    };
    expect(await countRequests()).toBe(1);
    await repository.deleteTable();
    await expectGone(repository, options.stack);
    await using deployer = await DynamoRepository.open("app", options);
    await deployer.setSystemDefaults(LIMITS);
    await countRequests();
    await vi.waitFor(async () => expect(await countRequests()).toBe(1));
  });
});

/** Expects that every operation says what happened, and what to do. */
async function expectGone(repository: Repository, tableName: string): Promise<void> {
  const limiter = new RateLimiter({ repository, onUnavailable: "allow" });
  const asked = [
    limiter.acquire(call({ rpm: 1 })),
    limiter.acquire(call({ rpm: 1 }, "other")),
    limiter.available("e", "r"),
    repository.getLimits("e"),
  ];
  for (const outcome of await Promise.allSettled(asked)) {
    expect(outcome).toMatchObject({
      reason: {
        code: "ERR_LIMITER_INFRASTRUCTURE_NOT_FOUND",
        message: expect.stringMatching(
          new RegExp(
            `^Table ${tableName} is gone, .* was rolled back\\. Deploy or create it again`,
          ),
        ),
      },
    });
    const { reason } = outcome as PromiseRejectedResult;
    expect(reason).toBeInstanceOf(InfrastructureNotFoundError);
  }
}
