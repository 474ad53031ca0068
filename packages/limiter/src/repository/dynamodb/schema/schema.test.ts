import type { SupportedLimit } from "../../../core/supported-limits.ts";
import { readFileSync } from "node:fs";
import { runInNewContext } from "node:vm";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { RateLimiter, ValidationError } from "zae-limiter";
import * as schema from "zae-limiter/dynamodb/schema";
import type { BucketName, BucketRecord, UsageName } from "zae-limiter/dynamodb/schema";
import { MemoryRepository } from "zae-limiter/memory";
import { ManualClock } from "zae-limiter/testing";
import { smallLimit } from "../../../../test/support/arbitraries.ts";
import { bucketLimits, fullBucket } from "../../../core/bucket/bucket.ts";
import { DEFAULT_RESOURCE } from "../../../core/identifiers.ts";
import { Limit } from "../../../core/limit.ts";
import { bucketAttributes } from "../items/bucket-item.ts";
import { marshalItem, unmarshalItem, type AttributeMap } from "../transport/attribute-values.ts";

const NOW_MS = Date.UTC(2026, 0, 4, 12);
const NAME = { entityId: "key-1", resource: "gpt-4", shard: 0 };

const buildItem = (limits: readonly SupportedLimit[], nowMs: number, name: BucketName = NAME) =>
  marshalItem({
    ...schema.bucketKey("ns1", name),
    ...bucketAttributes(fullBucket(bucketLimits(limits), nowMs)),
    sv: 1,
    shard_count: 1,
  });

describe("keys", () => {
  const names = fc.record({
    entityId: fc.stringMatching(/^[a-zA-Z0-9][a-zA-Z0-9_.\-:@]{0,20}$/),
    resource: fc.stringMatching(/^[a-zA-Z][a-zA-Z0-9_.\-/:]{0,20}$/),
    namespaceId: fc.stringMatching(/^[A-Za-z0-9_][A-Za-z0-9_-]{10}$/),
    name: fc.stringMatching(/^[a-zA-Z][a-zA-Z0-9_.-]{0,20}$/),
    shard: fc.nat(63),
    window: fc.constantFrom("hourly", "daily", "monthly"),
    startMs: fc.nat(4_000_000).map((hours) => hours * 3_600_000),
  });

  it("of every record say which it is, whatever the ids", () => {
    const property = fc.property(names, ({ namespaceId, name, shard, window, startMs, ...own }) => {
      const [{ entityId, resource }, table] = [own, schema.TABLE_NAMESPACE];
      const bucket: BucketName = { ...own, shard };
      const usage: UsageName = { ...own, window, startMs };
      const levels = [
        { level: "system" },
        { level: "resource", resource },
        { level: "entity", ...own },
        { level: "entity", entityId, resource: DEFAULT_RESOURCE },
      ] as const;
      const records = [
        [schema.entityKey(namespaceId, entityId), { kind: "entity", entityId }],
        [schema.bucketKey(namespaceId, bucket), { kind: "bucket", ...bucket }],
        [schema.usageKey(namespaceId, usage), { kind: "usage", ...usage }],
        ...levels.map((key) => [schema.configKey(namespaceId, key), { kind: "limits", ...key }]),
        ...[entityId, `$RESOURCE:${resource}`].map((id) => [
          schema.auditKey(namespaceId, id, "01H"),
          { kind: "audit", entityId: id, eventId: "01H" },
        ]),
        [schema.provisionerKey(namespaceId), { kind: "provisioner" }],
        [schema.provisionerStateKey(namespaceId), { kind: "provisioner state" }],
        [schema.namespaceNameKey(name), { kind: "namespace name", registered: name, ...of(table) }],
        [
          schema.namespaceIdKey(namespaceId),
          { kind: "namespace id", registered: namespaceId, ...of(table) },
        ],
        [schema.versionKey(), { kind: "version", ...of(table) }],
        [schema.upgradeKey(), { kind: "upgrade", ...of(table) }],
        [schema.pulseKey(), { kind: "pulse", ...of(table) }],
        [schema.heartbeatKey(), { kind: "heartbeat", ...of(table) }],
        [schema.streamLeaseKey(), { kind: "stream lease", ...of(table) }],
      ] as [schema.ItemKey, object][];
      for (const [key, record] of records) {
        expect(schema.parseKey(key)).toEqual({ namespaceId, ...record });
        // Also as DynamoDB writes it.
        expect(schema.parseKey(marshalItem({ ...key }))).toEqual({ namespaceId, ...record });
      }
    });
    fc.assert(property);
  });

  it("of anything else say nothing", () => {
    for (const [PK, SK] of [
      ["ns1/BUCKET#key-1#gpt-4#0", "#CONFIG"],
      ["ns1/SYSTEM#", "#VERSION"],
      ["ns1/SYSTEM#", "#NSID#ns1"],
      ["/SYSTEM#", "#PROVISIONER"],
      ["_/SYSTEM#", "#NAMESPACE#"],
      ["ns1/AUDIT#key-1", "#META"],
      [7, undefined],
    ])
      expect(schema.parseKey({ PK, SK }), `${PK} ${SK}`).toBeUndefined();
    expect(schema.parseKey(undefined)).toBeUndefined();
  });
});

const of = (namespaceId: string) => ({ namespaceId });

/** What `charge` of a limiter does to a bucket that was just refilled. */
function charge(bucket: BucketRecord, taken: Readonly<Record<string, number>>): BucketRecord {
  const limits = bucket.limits.map((limit) => ({
    ...limit,
    tokensMilli: limit.tokensMilli - taken[limit.limit.name]! * 1000,
  }));
  return { ...bucket, limits };
}

describe("buckets", () => {
  const amounts = fc.record({ rpm: fc.nat(120), tpm: fc.nat(120) });
  const step = fc.oneof(
    fc.record({ waitMs: fc.nat(100_000) }),
    fc.record({ acquire: amounts }),
    fc.record({ charge: amounts }),
  );

  it("refill, consume and retryAfter agree with the limiter over random histories", async () => {
    const limits = fc.tuple(smallLimit("rpm"), smallLimit("tpm"));
    const property = fc.asyncProperty(limits, fc.array(step), async (pair, steps) => {
      const clock = new ManualClock(NOW_MS);
      const repository = new MemoryRepository({ clock, recordUsage: false });
      await repository.setSystemDefaults(pair);
      const limiter = new RateLimiter({ repository });
      let bucket = schema.parseBucketItem(buildItem(pair, NOW_MS))!;
      for (const next of steps) {
        const nowMs = clock.now();
        if ("waitMs" in next) await clock.advance(next.waitMs);
        else if ("charge" in next) {
          await limiter.charge({ ...call, amounts: next.charge });
          bucket = charge(schema.refill(bucket, nowMs), next.charge);
        } else {
          const result = await limiter.tryAcquire({ ...call, consume: next.acquire });
          const consumption = { amounts: next.acquire, nowMs };
          const consumed = schema.consume(bucket, consumption);
          const retryAfterMs = schema.retryAfter(bucket, consumption);
          const retryAfterSeconds = result.granted ? 0 : result.refusal.retryAfterSeconds;
          expect(retryAfterMs / 1000).toBe(retryAfterSeconds);
          expect(consumed.granted).toBe(result.granted);
          if (!consumed.granted) expect(consumed.retryAfterMs).toBe(retryAfterMs);
          else bucket = consumed.bucket;
          if (result.granted) await result.lease.commit();
        }
        const left = schema
          .refill(bucket, clock.now())
          .limits.map(({ limit, tokensMilli }) => [limit.name, Math.floor(tokensMilli / 1000)]);
        expect(Object.fromEntries(left)).toEqual(await limiter.available("key-1", "gpt-4"));
      }
    });
    await fc.assert(property);
  });

  const call = { entityId: "key-1", resource: "gpt-4" };
  it("are read with their names, and a shard with its share", () => {
    const item = buildItem([Limit.perMinute("rpm", 60)], NOW_MS, { ...NAME, shard: 1 });
    const further = marshalItem({ shard_count: 2, parent_id: "team-1", ttl: 7, b_rpm_rm: 5 });
    expect(schema.parseBucketItem({ ...item, ...further })).toMatchObject({
      namespaceId: "ns1",
      ...NAME,
      shard: 1,
      shardCount: 2,
      parentId: "team-1",
      expiresAtSeconds: 7,
      lastRefillMs: NOW_MS,
      limits: [{ capacityMilli: 30_000, tokensMilli: 60_000, remainder: 5, hidden: false }],
    });
    expect(schema.parseBucketItem(marshalItem({ ...schema.versionKey() }))).toBeUndefined();
  });

  it("ignore limits that have left the policy", () => {
    const item = buildItem([Limit.perMinute("rpm", 60), Limit.perMinute("old", 60)], NOW_MS);
    const bucket = schema.parseBucketItem({
      ...item,
      ...marshalItem({ b_old_hd: 1, b_old_tk: -1000 }),
    })!;
    const consumption = { amounts: { rpm: 1 }, nowMs: NOW_MS };
    expect(schema.consume(bucket, consumption).granted).toBe(true);
    expect(schema.retryAfter(bucket, consumption)).toBe(0);
    expect(() => schema.consume(bucket, { amounts: { old: 1 }, nowMs: NOW_MS })).toThrow(
      /no such limit; the limits are rpm/,
    );
  });

  it("refuse input that would give a wrong answer", () => {
    const item = buildItem([Limit.perMinute("rpm", 60)], NOW_MS);
    const plain = unmarshalItem(item) as unknown as AttributeMap;
    const bucket = schema.parseBucketItem(item)!;
    for (const [refused, message] of [
      [() => schema.parseBucketItem(plain), /^Invalid item: must have types/],
      [() => schema.refill(bucket, NaN), /^Invalid nowMs: must be a whole number/],
      [() => schema.consume(bucket, { amounts: { rpn: 1 }, nowMs: 0 }), /no such limit/],
      [() => schema.retryAfter(bucket, { amounts: { rpm: -1 }, nowMs: 0 }), /not be negative/],
      [() => schema.retryAfter(bucket, { amounts: {}, nowMs: 0.5 }), /^Invalid nowMs/],
    ] as const) {
      expect(refused).toThrow(ValidationError);
      expect(refused).toThrow(message);
    }
  });
});

describe("the example of", () => {
  const sources = ["../items/keys.ts", "parse-key.ts", "bucket-record.ts", "bucket-arithmetic.ts"]
    .map((path) => readFileSync(new URL(path, import.meta.url), "utf8"))
    .join("");
  const examples = sources.matchAll(
    /@example\s((?:(?!@example|\*\/)[^])*)\*\/\nexport function (\w+)/g,
  );
  const results = [...examples].flatMap(([, code = "", name = ""]) => {
    const [expression = "", result] = code.replaceAll(/^ \* ?/gm, "").split(/\/\/ /);
    return result === undefined
      ? []
      : [[name, expression.trim().replace(/;$/, ""), result] as const];
  });

  it.each(results)("%s gives what it shows", (_, expression, result) => {
    const item = buildItem([Limit.perMinute("rpm", 60)], NOW_MS);
    const scope = { ...schema, bucket: schema.parseBucketItem(item), nowMs: NOW_MS };
    const run = (code: string): unknown => runInNewContext(`(${code})`, scope);
    expect(run(expression)).toEqual(run(result));
  });

  it("every function is shown", () => {
    const functions = Object.entries(schema).filter(([, value]) => typeof value === "function");
    const shown = new Set(results.map(([name]) => name));
    const others = functions.map(([name]) => name).filter((name) => !shown.has(name));
    expect(others).toEqual(["parseStreamRecord", "parseBucketItem"]);
  });
});
