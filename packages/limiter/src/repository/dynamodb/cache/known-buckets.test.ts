import { describe, expect, it } from "vitest";
import { shardImage, shardItem, shardKey } from "../../../../test/support/shard-images.ts";
import { getString } from "../transport/attribute-values.ts";
import { parseBucketItem, type BucketImage } from "../items/bucket-item.ts";
import { bucketKey } from "../items/bucket-key.ts";
import type { ItemReader } from "../table/item-reader.ts";
import type { AttributeMap } from "../transport/attribute-values.ts";
import { KnownBuckets } from "./known-buckets.ts";

const KEY = bucketKey({ namespaceId: "ns", entityId: "a", resource: "r", shard: 0 }, undefined);

describe("what is known of a bucket", () => {
  it("keeps a bucket when a concurrent read found none", () => {
    const known = newKnown();
    const creating = known.stampRequest();
    const reads = known.stampRequest();
    known.remember(KEY, image("a.1"), creating);
    known.remember(KEY, undefined, reads);
    expect(known.getImage(KEY)?.creation).toBe("a.1");
  });

  it("learns of a bucket from a reply that was overtaken by a read that found none", () => {
    const known = newKnown();
    const creating = known.stampRequest();
    known.remember(KEY, undefined, known.stampRequest());
    known.remember(KEY, image("a.1"), creating);
    expect(known.getImage(KEY)?.creation).toBe("a.1");
  });

  it("forgets a bucket that a later read does not find", () => {
    const known = newKnown();
    known.remember(KEY, image("a.1"), known.stampRequest());
    known.remember(KEY, undefined, known.stampRequest());
    expect(known.getImage(KEY)).toBeUndefined();
  });

  it("counts what a transaction took, until a reply that was requested later shows it", () => {
    const known = newKnown();
    const unseen = (): unknown => known.get(KEY).shards.map(({ unseenMilli }) => unseenMilli);
    known.remember(KEY, image("a.1"), known.stampRequest());
    expect(unseen()).toEqual([undefined]);
    const earlier = known.stampRequest();
    known.outdate(KEY, { tpm: 2000 });
    known.outdate(KEY, { tpm: 500, rpm: 1000 });
    expect(unseen()).toEqual([{ tpm: 2500, rpm: 1000 }]);
    known.remember(KEY, image("a.1"), earlier);
    expect(unseen()).toEqual([{ tpm: 2500, rpm: 1000 }]);
    known.remember(KEY, image("a.1"), known.stampRequest());
    expect(unseen()).toEqual([undefined]);
  });

  it("keeps the image of a bucket that is forgotten while work on it is under way, but refuses no call with it", () => {
    const known = newKnown();
    known.remember(KEY, image("a.1"), known.stampRequest());
    const entry = known.entry(KEY);
    known.pin(entry);
    known.forget(KEY.text);
    expect(known.entry(KEY)).toBe(entry);
    expect(known.getImage(KEY)?.creation).toBe("a.1");
    expect(known.get(KEY)).toMatchObject({ isWhole: false, seenAt: undefined });
    known.unpin(entry);
    known.forget(KEY.text);
    expect(known.getImage(KEY)).toBeUndefined();
  });

  it("lasts while fewer than 5000 others are used, and is gone after 10 000, unless work is under way", () => {
    const known = newKnown();
    const [used, unused, pinned] = ["used", "unused", "pinned"].map((id) => shardKey(0, id));
    for (const key of [used!, unused!, pinned!])
      known.remember(key, image("a.1"), known.stampRequest());
    known.pin(known.entry(pinned!));
    const remembered = (): unknown =>
      [used!, unused!, pinned!].map((key) => known.getImage(key) !== undefined);
    let others = 0;
    const useOthers = (count: number): void => {
      for (let each = 0; each < count; each += 1) known.entry(shardKey(0, `e${(others += 1)}`));
    };
    useOthers(4990);
    expect(remembered()).toEqual([true, true, true]);
    known.entry(used!);
    for (let times = 0; times < 3; times += 1) {
      useOthers(4990);
      known.entry(used!);
    }
    expect(remembered()).toEqual([true, false, true]);
    known.unpin(known.entry(pinned!));
    useOthers(10_000);
    expect(remembered()).toEqual([false, false, false]);
  });

  it("is forgotten with its entity, whether it was used just now or long ago", () => {
    const known = newKnown();
    known.remember(KEY, image("a.1"), known.stampRequest());
    for (let each = 0; each < 6000; each += 1) known.entry(shardKey(0, `e${each}`));
    known.entry(KEY);
    known.forget(KEY.text);
    expect(known.getImage(KEY)).toBeUndefined();
    expect(known.entry(KEY).image).toBeUndefined();
  });
});

describe("the shards of a bucket, as far as they are known", () => {
  it("are those of the largest divisor, also while shard 0 has a smaller one", async () => {
    const known = reading([shardItem({ divisor: 2 }), shardItem({ shard: 1, divisor: 4 })]);
    known.remember(shardKey(), shardImage({ divisor: 2 }), known.stampRequest());
    expect(await known.readAll(shardKey())).toMatchObject({ count: 2, isWhole: false });
  });

  it("are found by a process that knows shard 0 alone, while others are being merged", async () => {
    const known = reading([
      shardItem({ divisor: 2 }),
      shardItem({ shard: 1, divisor: 4 }),
      shardItem({ shard: 3, divisor: 4 }),
    ]);
    const { count, isWhole, shards } = await known.readAll(shardKey());
    expect({ count, isWhole }).toEqual({ count: 2, isWhole: true });
    expect(shards.map(({ image: { shard, divisor } }) => [shard, divisor])).toEqual([
      [0, 2],
      [1, 4],
      [3, 4],
    ]);
  });

  it("are not whole while one that was merged and its merged half are both remembered", () => {
    const known = newKnown();
    for (const [shard, divisor] of [
      [0, 2],
      [1, 2],
      [2, 4],
    ] as const)
      known.remember(shardKey(shard), shardImage({ shard, divisor }), known.stampRequest());
    known.remember(shardKey(1), shardImage({ shard: 1, divisor: 4 }), known.stampRequest());
    expect(known.get(shardKey()).isWhole).toBe(false);
  });
});

describe("an image that a refusal may rest on", () => {
  it("is any of a bucket that only calls on one bucket take from", () => {
    const { reply, sureWrites } = replies();
    reply(7, undefined);
    expect(sureWrites()).toBe(7);
  });

  it("is the last, as long as no other process writes", () => {
    const { reply, wait, sureWrites } = replies();
    reply(1, 0, 1);
    reply(2, 0, 1);
    expect(sureWrites()).toBe(2);
    reply(4, 0, 1);
    expect(sureWrites()).toBe(2);
    wait(49);
    reply(5, 0, 1);
    expect(sureWrites()).toBe(2);
    wait(1);
    reply(6, 0, 1);
    expect(sureWrites()).toBe(6);
  });

  it("is an older one, once nothing was undone for a while", () => {
    const { known, reply, sureWrites } = replies();
    reply(4, 2);
    const before = known.get(KEY);
    reply(9, 2);
    known.confirm(KEY, before);
    expect(sureWrites()).toBe(4);
    const later = known.get(KEY);
    reply(11, 3);
    known.confirm(KEY, later);
    expect(sureWrites()).toBeUndefined();
  });

  it("needs as long as four of the slowest round trips", () => {
    const { known, wait } = replies();
    expect(known.decisionMs).toBe(50);
    const sent = known.stampRequest();
    wait(20);
    known.remember(KEY, shardImage(), sent);
    expect(known.decisionMs).toBe(80);
    known.remember(KEY, shardImage({ writes: 2 }), known.stampRequest());
    expect(known.decisionMs).toBe(72);
  });
});

/** Replies that come one after another, each with the writes and the undone takes it shows. */
function replies(): {
  readonly known: KnownBuckets;
  readonly reply: (writes: number, undone: number | undefined, writtenUnits?: number) => void;
  readonly wait: (ms: number) => void;
  readonly sureWrites: () => number | undefined;
} {
  let nowMs = 1000;
  const reader = { get: async () => undefined } as unknown as ItemReader;
  const known = new KnownBuckets(reader, { now: () => nowMs, sleep: async () => {} });
  return {
    known,
    reply: (writes, undone, writtenUnits) => {
      const seen = shardImage({ writes, ...(undone !== undefined && { undone }) });
      known.remember(KEY, seen, known.stampRequest(), writtenUnits);
    },
    wait: (ms) => {
      nowMs += ms;
    },
    sureWrites: () => known.get(KEY).shards[0]?.sure?.image.writes,
  };
}

/** What is known of a table with these items. */
function reading(items: readonly AttributeMap[]): KnownBuckets {
  const get = async ({ PK }: { readonly PK: string }): Promise<AttributeMap | undefined> =>
    items.find((item) => getString(item["PK"]) === PK);
  return new KnownBuckets({ get } as unknown as ItemReader, {
    now: () => 0,
    sleep: async () => {},
  });
}

describe("reads of all shards", () => {
  it("are shared by all who come while one is under way, and not with that one", async () => {
    const { known, answer, sent } = heldKnown();
    const first = known.readAll(KEY);
    const later = [known.readAll(KEY), known.readAll(KEY)];
    const cameAt = known.stampRequest().order;
    expect(sent()).toBe(1);
    answer("a.1");
    expect((await first).shards[0]?.image.creation).toBe("a.1");
    await Promise.resolve();
    expect(sent()).toBe(2);
    const last = known.readAll(KEY);
    answer("a.2");
    for (const each of await Promise.all(later)) {
      expect(each.shards[0]?.image.creation).toBe("a.2");
      expect(each.seenAt!.order).toBeGreaterThan(cameAt);
    }
    answer("a.3");
    expect((await last).shards[0]?.image.creation).toBe("a.3");
    const next = known.readAll(KEY);
    expect(sent()).toBe(4);
    answer("a.4");
    expect((await next).shards[0]?.image.creation).toBe("a.4");
  });

  it("fail only for those that share them", async () => {
    const { known, answer } = heldKnown();
    const [first, later] = [known.readAll(KEY), known.readAll(KEY)];
    answer(new Error("away"));
    await expect(first).rejects.toThrow("away");
    answer("a.1");
    expect((await later).shards[0]?.image.creation).toBe("a.1");
  });

  it("of two buckets go side by side", () => {
    const { known, sent } = heldKnown();
    const other = bucketKey(
      { namespaceId: "ns", entityId: "b", resource: "r", shard: 0 },
      undefined,
    );
    void known.readAll(KEY);
    void known.readAll(other);
    expect(sent()).toBe(2);
  });
});

/** Buckets whose reads are answered one after another, when the test says so. */
function heldKnown(): {
  readonly known: KnownBuckets;
  readonly answer: (answer: string | Error) => void;
  readonly sent: () => number;
} {
  const waiting: ((answer: string | Error) => void)[] = [];
  let sent = 0;
  const reader = {
    get: async () => {
      sent += 1;
      const answer = await new Promise<string | Error>((resolve) => waiting.push(resolve));
      if (answer instanceof Error) throw answer;
      return buildItem(answer);
    },
  } as unknown as ItemReader;
  const known = new KnownBuckets(reader, { now: () => 0, sleep: async () => {} });
  return { known, sent: () => sent, answer: (answer) => waiting.shift()!(answer) };
}

function image(creation: string): BucketImage {
  return parseBucketItem(buildItem(creation));
}

function buildItem(creation: string): AttributeMap {
  return { PK: { S: KEY.text }, cr: { S: creation }, sv: { N: "1" } };
}

function newKnown(): KnownBuckets {
  const reader = { get: async () => undefined } as unknown as ItemReader;
  return new KnownBuckets(reader, { now: () => 0, sleep: async () => {} });
}
