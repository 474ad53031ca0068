/*
 * The rights of requests that calls on different buckets share: batches of PartiQL updates. They
 * are made by hand here, and by programs, and executed by an engine, behind the policies and
 * without them.
 */
import { Limit, RateLimiter, type Repository } from "zae-limiter";
import { DynamoRepository, type DynamoTransport } from "zae-limiter/dynamodb";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { describeWithEngine, freshTableName } from "../../limiter/test/support/engine.ts";
import { openTransport } from "../../limiter/test/support/transports.ts";
import { startEnforcingProxy } from "./support/iam/enforcing-proxy.ts";
import { listIamCalls } from "./support/iam/iam-calls.ts";
import type { PolicyJudge } from "./support/iam/policy-judge.ts";
import { judgeBeforeSharing, getJudge } from "./support/iam/rights.ts";

it("a statement is decided about by the key among its parameters", () => {
  const Parameters = [{ S: "a" }, { S: "b" }, { S: "id/BUCKET#e#r#0" }, { S: "#STATE" }];
  const where = `WHERE "PK"=? AND "SK"=?`;
  const listKeys = (...texts: readonly string[]): readonly string[] =>
    listIamCalls("BatchExecuteStatement", {
      Statements: texts.map((Statement) => ({ Statement, Parameters })),
    }).flatMap(({ leadingKeys }) => leadingKeys);
  const set = `UPDATE "t" SET "a?"=?, "b ""WHERE"""="c"+?`;
  expect(listKeys(`${set} ${where} AND "d">=?`)).toEqual(["id/BUCKET#e#r#0"]);
  // Each statement has its own decision, also if several are on items of one partition.
  expect(listKeys(`${set} ${where}`, `UPDATE "t" SET "a"=? ${where}`)).toEqual([
    "id/BUCKET#e#r#0",
    "b",
  ]);
  for (const other of [
    `SELECT * FROM "t" ${where}`,
    `DELETE FROM "t" ${where}`,
    `UPDATE "t"."GSI1" SET "a"=? ${where}`,
    `UPDATE "t" SET "a"=1 WHERE "PK"='id/BUCKET#e#r#0' AND "SK"='#STATE'`,
    `UPDATE "t" SET "a"='?' ${where}`,
    `UPDATE "t" SET "a"=? WHERE "d">=? AND "PK"=? AND "SK"=?`,
    `UPDATE "t" SET "a"=?, "b"=?, "c"=?, "d"=? ${where}`,
  ])
    expect(() => listKeys(other), other).toThrow("not an update of one item by key");
});

describeWithEngine("a request that several calls share", (engine) => {
  const table = freshTableName();
  let transport: DynamoTransport;
  let repository: DynamoRepository;
  /** The partition keys of buckets: two of a tenant, and one of another. */
  let own: readonly [string, string];
  let foreign: string;

  beforeAll(async () => {
    transport = await openTransport("lean", engine());
    repository = await DynamoRepository.open("tenant-a", {
      stack: table,
      transport,
      provisioning: "table",
      requestTimeoutMs: 10_000,
    });
    await repository.registerNamespace("tenant-b");
    const other = await repository.namespace("tenant-b");
    own = [await buildBucket(repository, "key-1"), await buildBucket(repository, "key-2")];
    foreign = await buildBucket(other, "key-1");
    await execute(transport, "first", [...own, foreign]);
  });
  afterAll(async () => {
    await repository.close();
    transport.close();
  });

  it.each(["namespace-acquire", "namespace-full-access"] as const)(
    "writes the buckets of a tenant with %s, and of no other",
    async (kind) => {
      const judge = getJudge(kind, repository.namespaceId);
      const { responses, denied } = await executeWith(judge, kind, [own[0], foreign, own[1]]);
      expect(responses).toEqual([apply(kind), DENIED, apply(kind)]);
      expect(denied).toEqual(["dynamodb:PartiQLUpdate"]);
      expect(await listMarks([...own, foreign])).toEqual([kind, kind, "first"]);
    },
  );

  it.each([
    ["lacks its action", judgeBeforeSharing, false],
    ["has it", getJudge, true],
  ] as const)("a program whose policy %s makes its calls", async (_, judgeFor, isShared) => {
    const warned = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
    const proxy = await startEnforcingProxy(
      engine().endpointUrl,
      judgeFor("namespace-acquire", repository.namespaceId),
    );
    const bounded = await openTransport("lean", proxy);
    const program = await DynamoRepository.open("tenant-a", {
      stack: table,
      transport: bounded,
      provisioning: "stack",
    });
    const limiter = new RateLimiter({ repository: program });
    const limits = [Limit.perDay("rpm", 5)];
    const round = (): Promise<unknown> =>
      Promise.all(
        ["key-3", "key-4", "key-5"].map((entityId) =>
          limiter.acquire(
            { entityId, resource: `r-${isShared}`, consume: { rpm: 1 }, limits },
            () => {},
          ),
        ),
      );
    for (let rounds = 0; rounds < 3; rounds += 1) await round();
    // Those of one request: then it is known.
    expect(proxy.denied).toEqual(Array(isShared ? 0 : 3).fill("dynamodb:PartiQLUpdate"));
    expect(warned.mock.calls.map(([, options]) => options)).toEqual(
      isShared ? [] : [{ code: "WARN_LIMITER_REQUESTS_NOT_SHARED" }],
    );
    for (const entityId of ["key-3", "key-4", "key-5"])
      expect(await limiter.available(entityId, `r-${isShared}`, { limits })).toMatchObject({
        rpm: 2,
      });
    warned.mockRestore();
    await program.close();
    bounded.close();
    await proxy.stop();
  });

  /** Writes a mark into buckets with one request, by a program that has only these rights. */
  async function executeWith(
    judge: PolicyJudge,
    mark: string,
    keys: readonly string[],
  ): Promise<{ readonly responses: readonly object[]; readonly denied: readonly string[] }> {
    const proxy = await startEnforcingProxy(engine().endpointUrl, judge);
    const bounded = await openTransport("lean", proxy);
    const responses = await execute(bounded, mark, keys);
    bounded.close();
    await proxy.stop();
    return { responses, denied: proxy.denied };
  }

  async function execute(
    by: DynamoTransport,
    mark: string,
    keys: readonly string[],
  ): Promise<readonly object[]> {
    const Statement =
      `UPDATE "${table}" SET "marked?"=? WHERE "PK"=? AND "SK"=? AND "entity_id"<>? ` +
      "RETURNING ALL NEW *";
    const Statements = keys.map((key) => ({
      Statement,
      Parameters: [{ S: mark }, { S: key }, { S: "#STATE" }, { S: "nobody" }],
    }));
    const { Responses } = await send(by, "BatchExecuteStatement", { Statements });
    return Responses as readonly object[];
  }

  async function listMarks(keys: readonly string[]): Promise<readonly (string | undefined)[]> {
    const marks: (string | undefined)[] = [];
    for (const key of keys) {
      const Key = { PK: { S: key }, SK: { S: "#STATE" } };
      const { Item } = await send(transport, "GetItem", { TableName: table, Key });
      marks.push((Item as Readonly<Record<string, { readonly S: string }>>)["marked?"]?.S);
    }
    return marks;
  }
});

/** A statement that was denied, as DynamoDB answers it. */
const DENIED = {
  Error: {
    Code: "AccessDenied",
    Message: expect.stringMatching(
      /is not authorized to perform: dynamodb:PartiQLUpdate on resource: arn:aws:dynamodb:/,
    ) as string,
  },
};

/** A statement that was executed, with the item as it is then. */
function apply(mark: string): object {
  return expect.objectContaining({
    Item: expect.objectContaining({ "marked?": { S: mark } }) as object,
  }) as object;
}

/** Takes one token; returns the partition key of the bucket that this has created. */
async function buildBucket(repository: Repository, entityId: string): Promise<string> {
  const limits = [Limit.perDay("rpm", 5)];
  const request = { entityId, resource: "gpt-4", consume: { rpm: 1 }, limits };
  await (await new RateLimiter({ repository }).acquire(request)).commit();
  return `${repository.namespaceId}/BUCKET#${entityId}#gpt-4#0`;
}

async function send(
  by: DynamoTransport,
  operation: string,
  input: object,
): Promise<Readonly<Record<string, unknown>>> {
  const output = await by.call(operation, input, { signal: AbortSignal.timeout(10_000) });
  return output as Readonly<Record<string, unknown>>;
}
