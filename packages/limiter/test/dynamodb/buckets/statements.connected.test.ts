/*
 * A write has two forms: an UpdateItem, and a statement of PartiQL for a request that it shares.
 * Here both are carried out by an engine on equal items. They must have the same effect and the
 * same reply, or the statement must be invalid and change nothing, for a reason that is known.
 */
import * as fc from "fast-check";
import { beforeAll, expect, it } from "vitest";
import { Limit, type RateLimit } from "zae-limiter";
import { seededRandom } from "zae-limiter/testing";
import { fullBucket } from "../../../src/core/bucket/bucket.ts";
import { buildPolicy } from "../../../src/core/bucket/policy.ts";
import {
  parseBucketItem,
  slotAttribute,
} from "../../../src/repository/dynamodb/items/bucket-item.ts";
import type { BucketKey } from "../../../src/repository/dynamodb/items/bucket-key.ts";
import { batchGet, batchWrite } from "../../../src/repository/dynamodb/table/batch.ts";
import type { StatementReply } from "../../../src/repository/dynamodb/table/statement-outcome.ts";
import type { AttributeMap } from "../../../src/repository/dynamodb/transport/attribute-values.ts";
import { buildFence } from "../../../src/repository/dynamodb/write/fence.ts";
import { OperationIds } from "../../../src/repository/dynamodb/write/operation-ids.ts";
import { planWrite, type PlannedWrite } from "../../../src/repository/dynamodb/write/write-plan.ts";
import { validLimit } from "../../support/arbitraries.ts";
import {
  after,
  buildBucket,
  buildIntent,
  buildItem,
  buildLimits,
  NAMES,
  buildRequest,
  situation,
  START_MS,
  type Situation,
} from "../../support/batch-cases.ts";
import { connectToNewTable, type ConnectedTable } from "../../support/connect.ts";
import { describeWithEngine } from "../../support/engine.ts";
import { newMarker } from "../../support/scripted-writes.ts";
import { shardKey } from "../../support/shard-images.ts";

/** Requests of so many statements each. */
const RUNS = Number(process.env["RUNS"] ?? 6);
const STATEMENTS = 25;

/** Letters in both cases, digits, signs that must be quoted, and the longest there may be. */
const LIMIT_NAMES = ["tpm", "TPM", "rpm", "v1_5", "in-put", "out.put", "x".repeat(64)];

/** A write to send in both forms, and the item that it finds. */
interface Case {
  readonly write: (key: BucketKey) => PlannedWrite["request"] | undefined;
  readonly found: AttributeMap;
}

/** What became of a write, and of its item. */
interface Outcome {
  readonly kind: "applied" | "condition failed" | "invalid";
  /** The item, or what changed, in the reply to a write that was applied. */
  readonly shown?: AttributeMap | undefined;
  readonly item: AttributeMap;
}

describeWithEngine("a write as a statement", (engine) => {
  let table: ConnectedTable;
  let entities = 0;

  beforeAll(async () => {
    table = await connectToNewTable(engine().endpointUrl, { transport: "lean" });
  });

  it(
    "has the effect and the reply of the same write alone",
    { timeout: 60_000 + 1000 * RUNS },
    async () => {
      const seen = { applied: 0, "condition failed": 0, invalid: 0, inexpressible: 0 };
      const cases = fc.array(anyCase(), { minLength: STATEMENTS, maxLength: STATEMENTS });
      await fc.assert(
        fc.asyncProperty(cases, async (drawn) => {
          for (const kind of await compare(drawn)) seen[kind] += 1;
        }),
        { numRuns: RUNS, endOnFailure: true },
      );
      for (const [kind, count] of Object.entries(seen))
        expect(count, `${kind} ${JSON.stringify(seen)}`).toBeGreaterThan(RUNS / 2);
    },
  );

  it("exists for as many limits as there may be, unless their names are long", async () => {
    const cases = [1, 8, 32].flatMap((count) => [4, 64].map((length) => manyLimits(count, length)));
    // DynamoDB has a limit of 8192 characters.
    const applied = Array.from({ length: 5 }, () => "applied");
    expect(await compare(cases)).toEqual([...applied, "inexpressible"]);
  });

  /** Carries writes out in both forms, and compares; returns what became of each. */
  async function compare(
    cases: readonly Case[],
  ): Promise<readonly (Outcome["kind"] | "inexpressible")[]> {
    const [single, stated] = [nextKeys(cases.length), nextKeys(cases.length)];
    const puts = [...single, ...stated].map((key, index) => ({
      put: { ...cases[index % cases.length]!.found, ...key.marshalled },
    }));
    await batchWrite(table.connection, puts);
    const alone = await Promise.all(
      cases.map(async ({ write }, index) => updateAlone(write(single[index]!)!)),
    );
    const statements = cases.map(({ write }, index) =>
      write(stated[index]!)!.statement(table.tableName),
    );
    const replies = await execute(statements.filter((statement) => statement !== undefined));
    const items = await batchGet(
      table.connection,
      [...single, ...stated].map((key) => key.primary),
    );
    return cases.map(({ found }, index) => {
      const statement = statements[index];
      const result = { ...alone[index]!, item: withoutKey(items[index]!) };
      if (statement === undefined) return "inexpressible";
      const reply = replies.shift()!;
      const item = withoutKey(items[cases.length + index]!);
      const mayBeInvalid = isUnreadable(statement.Statement, found);
      if (reply.Error?.Code === "ValidationError") {
        expect(mayBeInvalid, `${statement.Statement}: ${reply.Error.Message}`).toBe(true);
        expect(item).toEqual(found);
        return "invalid";
      }
      expect({ ...toOutcome(reply, found), item }, statement.Statement).toEqual(result);
      return result.kind;
    });
  }

  /** A statement that this engine may not read, or not carry out. */
  function isUnreadable(statement: string, found: AttributeMap): boolean {
    // Every name that is not an identifier is quoted; dynoxide reads no quoted name in a sum.
    if (engine().name === "dynoxide") return /="[^"]*"\+\?/.test(statement);
    // All others add only to what there is.
    const added = [...statement.matchAll(/="?([^"=,]+)"?\+\?/g)].map(([, name]) => name!);
    expect(added.length).toBeGreaterThan(0);
    return added.some((name) => !(name in found));
  }

  async function updateAlone(
    request: PlannedWrite["request"],
  ): Promise<Pick<Outcome, "kind" | "shown">> {
    const reply = await table.connection.conditional<{ readonly Attributes?: AttributeMap }>(
      request.operation,
      request.input(table.tableName),
    );
    return reply.applied
      ? { kind: "applied", shown: withoutKey(reply.output.Attributes!) }
      : { kind: "condition failed" };
  }

  async function execute(statements: readonly object[]): Promise<StatementReply[]> {
    const { Responses } = await table.connection.call<{ readonly Responses: StatementReply[] }>(
      "BatchExecuteStatement",
      {
        Statements: statements.map((statement) =>
          Object.assign({ ReturnValuesOnConditionCheckFailure: "ALL_OLD" }, statement),
        ),
      },
    );
    expect(Responses).toHaveLength(statements.length);
    return Responses;
  }

  function nextKeys(count: number): readonly BucketKey[] {
    return Array.from({ length: count }, () => shardKey(0, `e-${(entities += 1)}`));
  }
});

function toOutcome(
  { Item, Error }: StatementReply,
  found: AttributeMap,
): Pick<Outcome, "kind" | "shown"> {
  if (!Error) return { kind: "applied", shown: withoutKey(Item!) };
  expect(Error.Code).toBe("ConditionalCheckFailed");
  if (Error.Item) expect(withoutKey(Error.Item)).toEqual(found);
  return { kind: "condition failed" };
}

function withoutKey(item: AttributeMap): AttributeMap {
  const { PK: _, SK: __, ...rest } = item;
  return rest;
}

function anyCase(): fc.Arbitrary<Case> {
  return fc
    .record({
      drawn: fc.oneof(situation(), largeSituation()),
      names: fc.shuffledSubarray(LIMIT_NAMES, { minLength: 2, maxLength: 2 }),
      // Most batches leave the limits as they are.
      otherLimits: fc.option(buildLimits(NAMES), { freq: 3, nil: undefined }),
      slot: fc.constantFrom("free", "own", "unanswered", "another's"),
      isFence: fc.boolean(),
      // What another process has changed, beside balances.
      others: fc.option(
        fc.constantFrom<AttributeMap>(
          { sv: { N: "6" } },
          { cr: { S: "other.0001" } },
          { [slotAttribute(0)]: { S: "other.zzzz" } },
          { gr: { N: "123456789012345678901234567890" } },
          { b_wcu_tc: { N: "-99999999999999999999" } },
        ),
        { nil: {} },
      ),
      lacks: fc.subarray(["gr", "b_tpm_tc", "b_TPM_tc", "b_rpm_rm"], { maxLength: 1 }),
    })
    .map(({ names, ...rest }) => getCase(rename(rest, names)))
    .filter(({ write }) => write(shardKey()) !== undefined);
}

interface Drawn {
  readonly drawn: Situation;
  readonly otherLimits: readonly RateLimit[] | undefined;
  readonly slot: string;
  readonly isFence: boolean;
  readonly others: AttributeMap;
  readonly lacks: readonly string[];
}

function getCase({ drawn, otherLimits, slot, isFence, others, lacks }: Drawn): Case {
  const policy = buildPolicy(otherLimits ?? drawn.limits, "resource");
  const nowMs = START_MS + drawn.elapsedMs;
  const bucket = buildBucket(drawn);
  const first = new OperationIds(seededRandom(1)).next([], { nowMs: START_MS })!;
  const slots: AttributeMap =
    slot === "free"
      ? {}
      : { [slotAttribute(first.slot)]: { S: slot === "another's" ? "other.0001" : first.id } };
  const image = parseBucketItem({ ...buildItem(bucket), ...slots });
  const found: AttributeMap = {
    ...buildItem(drawn.meanwhile.reduce((held, event) => after(held, event, nowMs), bucket)),
    ...slots,
    ...others,
  };
  return {
    found: Object.fromEntries(Object.entries(found).filter(([name]) => !lacks.includes(name))),
    write: (key) => {
      const request = buildRequest({
        key,
        policy,
        image,
        nowMs,
        intents: drawn.wanted.map((wanted) => buildIntent(wanted, policy)),
        outcomes: newMarker(slot === "unanswered" ? first : undefined),
      });
      return isFence && drawn.wanted.length < 2
        ? buildFence(image, request)?.request
        : planWrite(request).write?.request;
    },
  };
}

/** The same with other names of limits. */
function rename<Value>(value: Value, names: readonly string[]): Value {
  return JSON.parse(
    JSON.stringify(value).replaceAll(/"(?:rpm|tpm)"/g, (name) =>
      JSON.stringify(names[NAMES.indexOf(name.slice(1, -1))]),
    ),
  ) as Value;
}

/** One limit of any size: amounts up to the largest that a number holds exactly. */
function largeSituation(): fc.Arbitrary<Situation> {
  return validLimit("tpm").chain((limit) => {
    const amount = fc.integer({ min: -limit.capacity * 1000, max: limit.capacity * 1000 });
    const kind = fc.constantFrom("take" as const, "overrun" as const);
    return fc.record({
      limits: fc.constant([limit]),
      balances: fc.record({ tokens: amount, fraction: fc.constant(0.5) }).map((held) => [held]),
      elapsedMs: fc.nat({ max: 10_000 }),
      wanted: fc
        .record({ kind, amount: amount.map(Math.abs), isCascaded: fc.boolean() })
        .map(({ amount: tpm, ...member }) => [{ ...member, costs: { tpm } }]),
      meanwhile: fc.constant([]),
    });
  });
}

/** A take of all limits of a bucket. */
function manyLimits(count: number, length: number): Case {
  const names = Array.from({ length: count }, (_, index) => `n${index}`.padEnd(length, "x"));
  const policy = buildPolicy(
    names.map((name) => Limit.perMinute(name, 1000)),
    "resource",
  );
  const found = buildItem(fullBucket(policy.bucketLimits, START_MS));
  const costs = Object.fromEntries(names.map((name) => [name, 1000]));
  const intents = [buildIntent({ kind: "take", costs, isCascaded: false }, policy)];
  return {
    found,
    write: (key) =>
      planWrite(
        buildRequest({ key, policy, image: parseBucketItem(found), intents, nowMs: START_MS + 7 }),
      ).write?.request,
  };
}
