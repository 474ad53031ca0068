import { afterEach, expect, it, vi } from "vitest";
import {
  IncompatibleSchemaError,
  InfrastructureNotFoundError,
  NamespaceNotFoundError,
  RateLimiter,
  RateLimiterUnavailable,
  ValidationError,
} from "zae-limiter";
import { DynamoRepository } from "zae-limiter/dynamodb";
import { createTable } from "../../../src/repository/dynamodb/table/create-table.ts";
import { connect } from "../../support/connect.ts";
import { openRepository } from "zae-limiter/open";
import { describeWithEngine, freshTableName } from "../../support/engine.ts";
import { startFaultProxy } from "../../support/fault-proxy.ts";
import { openTransport } from "../../support/transports.ts";

describeWithEngine("opening a DynamoDB repository", (engine) => {
  afterEach(() => vi.unstubAllEnvs());

  it("opening creates table and namespace where it may, and finds them where it may not", async () => {
    const stack = freshTableName();
    const { endpointUrl } = engine();
    const never = { stack, endpointUrl, provisioning: "never" } as const;
    await expect(DynamoRepository.open("app", never)).rejects.toThrow(InfrastructureNotFoundError);
    await expect(DynamoRepository.open("app", never)).rejects.toThrow("provisioning=table");
    await expect(
      DynamoRepository.open("app", { stack, endpointUrl, create: false }),
    ).rejects.toThrow(InfrastructureNotFoundError);
    await using created = await DynamoRepository.open("app", { stack, endpointUrl });
    expect(created).toMatchObject({
      stackName: stack,
      tableName: stack,
      region: "us-east-1",
      endpointUrl,
    });
    expect(created.namespaceId).toMatch(/^[A-Za-z0-9_][A-Za-z0-9_-]{10}$/);
    await using found = await DynamoRepository.open("app", never);
    expect(found.namespaceId).toBe(created.namespaceId);
    await expect(DynamoRepository.open("other", never)).rejects.toThrow(NamespaceNotFoundError);
    expect((await created.listNamespaces()).map(({ name }) => name)).toEqual(["app", "default"]);
  });

  it("opening with create: false leaves a namespace unregistered that is not registered", async () => {
    const options = { stack: freshTableName(), endpointUrl: engine().endpointUrl };
    await using created = await DynamoRepository.open("app", options);
    await using looking = await DynamoRepository.open("other", { ...options, create: false });
    await expect(looking.getEntity("e")).rejects.toThrow(NamespaceNotFoundError);
    const acquire = { entityId: "e", resource: "r", consume: { rpm: 1 } };
    await expect(new RateLimiter({ repository: looking }).acquire(acquire)).rejects.toThrow(
      "Namespace other does not exist.",
    );
    const names = async () => (await created.listNamespaces()).map(({ name }) => name);
    expect(await names()).toEqual(["app", "default"]);
    await looking.registerNamespace("third");
    expect(await names()).toEqual(["app", "default", "third"]);
  });

  it("stack and namespace may come from the environment", async () => {
    const stack = freshTableName();
    vi.stubEnv("ZAEL_STACK", stack);
    vi.stubEnv("ZAEL_NAMESPACE", "from-environment");
    vi.stubEnv("AWS_REGION", "eu-central-1");
    await using repository = await DynamoRepository.open(undefined, {
      endpointUrl: engine().endpointUrl,
    });
    expect(repository).toMatchObject({
      stackName: stack,
      namespaceName: "from-environment",
      region: "eu-central-1",
    });
  });

  it("a URL opens a repository", async () => {
    const stack = freshTableName();
    const endpoint = encodeURIComponent(engine().endpointUrl);
    const url = `dynamodb://eu-west-1/${stack}?endpoint=${endpoint}`;
    await expect(openRepository(`${url}&provisioning=never`, { namespace: "app" })).rejects.toThrow(
      InfrastructureNotFoundError,
    );
    await using created = await openRepository(url, { namespace: "app" });
    await using repository = await openRepository(`${url}&provisioning=never`, {
      namespace: "app",
    });
    expect(repository).toMatchObject({
      stackName: stack,
      region: "eu-west-1",
      namespaceName: "app",
      namespaceId: created.namespaceId,
    });
  });

  it("the builder opens a repository, and registers no namespace", async () => {
    const options = { stack: freshTableName(), endpointUrl: engine().endpointUrl };
    await using first = await DynamoRepository.builder()
      .options(options)
      .onUnavailable("allow")
      .build();
    expect(first.namespaceName).toBe("default");
    expect((await first.getSystemDefaults()).onUnavailable).toBe("allow");
    await expect(
      DynamoRepository.builder().namespace("app").options(options).build(),
    ).rejects.toThrow(NamespaceNotFoundError);
    await first.registerNamespace("app");
    await using second = await DynamoRepository.builder().namespace("app").options(options).build();
    expect(second.namespaceName).toBe("app");
  });

  it("every way of opening finds one and the same namespace [W-58]", async () => {
    const options = { stack: freshTableName(), endpointUrl: engine().endpointUrl };
    await using opened = await DynamoRepository.open(undefined, options);
    await using built = await DynamoRepository.builder().options(options).build();
    await using named = await DynamoRepository.open("default", {
      ...options,
      provisioning: "never",
    });
    expect(opened.namespaceId).not.toBe("default");
    expect([built.namespaceId, named.namespaceId]).toEqual([
      opened.namespaceId,
      opened.namespaceId,
    ]);
  });

  it("by default, without an address, opens a stack or table that exists, and registers the namespace", async () => {
    const stack = freshTableName();
    const { endpointUrl } = engine();
    await using created = await DynamoRepository.open("app", { stack, endpointUrl });
    // A transport keeps the address from the options, as there is none on AWS.
    const transport = await openTransport("SDK's", engine());
    try {
      await using opened = await DynamoRepository.open("app", { stack, transport });
      expect(opened.namespaceId).toBe(created.namespaceId);
      await using other = await DynamoRepository.open("other", { stack, transport });
      expect((await created.listNamespaces()).map(({ name }) => name)).toEqual([
        "app",
        "default",
        "other",
      ]);
      expect(await other.getEntity("e")).toBeUndefined();
      await using built = await DynamoRepository.builder()
        .namespace("other")
        .options({ stack, transport })
        .build();
      expect(built.namespaceId).toBe(other.namespaceId);
    } finally {
      transport.close();
    }
  });

  it("a table that other software created gets the version record of its first user", async () => {
    const stack = freshTableName();
    const { endpointUrl } = engine();
    const { connection } = await connect(endpointUrl, { tableName: stack });
    await createTable(connection, { stream: false });
    const stackOptions = { stack, endpointUrl, provisioning: "stack" } as const;
    await using opened = await DynamoRepository.open("app", stackOptions);
    expect(await opened.getVersionRecord()).toMatchObject({ schemaVersion: "1.0.0" });
    await opened.setVersionRecord({ schemaVersion: "2.0.0" });
    await expect(DynamoRepository.open("app", stackOptions)).rejects.toThrow(
      IncompatibleSchemaError,
    );
  });

  it("a table gets a version record with its first namespace", async () => {
    const stack = freshTableName();
    const { endpointUrl } = engine();
    const { connection } = await connect(endpointUrl, { tableName: stack });
    await createTable(connection, { stream: false });
    // As the command line does it, on a table that was deployed by hand.
    const existing = { stack, endpointUrl, create: false };
    await using first = await DynamoRepository.open(undefined, existing);
    await first.registerNamespaces(["default", "app"]);
    await using second = await DynamoRepository.open("app", existing);
    expect(await second.getVersionRecord()).toMatchObject({ schemaVersion: "1.0.0" });
  });

  it("says how to create what is missing: on the command line, as URL and in code", async () => {
    const place = { stack: freshTableName(), region: "eu-west-1" };
    const { endpointUrl } = engine();
    const opening = DynamoRepository.open("app", { ...place, endpointUrl, provisioning: "never" });
    const { stack } = place;
    const url = `dynamodb://eu-west-1/${stack}?endpoint=${encodeURIComponent(endpointUrl)}&provisioning=table`;
    await expect(opening).rejects.toThrow(InfrastructureNotFoundError);
    const missing = `Neither a stack nor a table ${stack} exists in eu-west-1 (or it is not ready); `;
    const byUrl =
      `with the URL ${url}, ` +
      `or in code with DynamoRepository.open("app", { stack: "${stack}", provisioning: "table" }).`;
    await expect(opening).rejects.toThrow(
      `${missing}create the table on the command line with zae-limiter --repository "${url}" namespace register app, ${byUrl}`,
    );
    // A transport keeps the address from the options, as there is none on AWS.
    const transport = await openTransport("SDK's", engine());
    try {
      await expect(DynamoRepository.open("app", { ...place, transport })).rejects.toThrow(
        `${missing}deploy the stack with zae-limiter deploy --stack ${stack} --region eu-west-1, ` +
          `or create only the table with the URL dynamodb://eu-west-1/${stack}?provisioning=table, `,
      );
    } finally {
      transport.close();
    }
    await using created = await openRepository(url, { namespace: "app" });
    await using opened = await DynamoRepository.open("app", {
      ...place,
      endpointUrl,
      provisioning: "stack",
    });
    expect(opened.namespaceId).toBe(created.namespaceId);
  });

  it.each([
    [{ stack: "under_score" }, "stack"],
    [{ stack: "x".repeat(56) }, "stack"],
    [{ endpointUrl: "localhost:8000" }, "endpointUrl"],
    [{ provisioning: "sometimes" as never }, "provisioning"],
    [{ requestTimeoutMs: 0 }, "requestTimeoutMs"],
    [{ shareRequests: "false" as unknown as boolean }, "shareRequests"],
    [{ maxAttempts: 1.5 }, "maxAttempts"],
    [{ bucketTtlMultiplier: -1 }, "bucketTtlMultiplier"],
    [{ configCacheTtlMs: -1 }, "configCacheTtlMs"],
  ])("options such as %o are refused", async (options, field) => {
    const opening = DynamoRepository.open("app", {
      stack: freshTableName(),
      endpointUrl: engine().endpointUrl,
      ...options,
    });
    await expect(opening).rejects.toThrow(ValidationError);
    await expect(opening).rejects.toMatchObject({ field });
  });

  it("the table is created and deleted on request", async () => {
    await using repository = await DynamoRepository.open("app", {
      stack: freshTableName(),
      endpointUrl: engine().endpointUrl,
      stream: false,
    });
    expect(await repository.ping()).toBe(true);
    await repository.deleteTable();
    expect(await repository.ping()).toBe(false);
    await repository.createTable();
    expect(await repository.ping()).toBe(true);
  });

  it("a table that does not answer is given up, within time-out times attempts", async () => {
    const proxy = await startFaultProxy(engine().endpointUrl);
    try {
      const options = { stack: freshTableName(), endpointUrl: proxy.endpointUrl, stream: false };
      await using repository = await DynamoRepository.open("app", options);
      proxy.decide = () => "silence";
      await using impatient = await DynamoRepository.open("app", {
        ...options,
        endpointUrl: engine().endpointUrl,
      });
      expect(await impatient.ping()).toBe(true);
      const opening = DynamoRepository.open("app", {
        ...options,
        requestTimeoutMs: 750,
        maxAttempts: 2,
      });
      const before = proxy.seen.length;
      await expect(opening).rejects.toThrow(RateLimiterUnavailable);
      expect(proxy.seen.length - before).toBe(2);
      proxy.decide = () => undefined;
      expect(await repository.ping()).toBe(true);
    } finally {
      await proxy.stop();
    }
  });
});
