import type { RawStreamRecord } from "zae-limiter/aggregator";
import type { AttributeMap } from "../../src/repository/dynamodb/transport/attribute-values.ts";

/** A record as an engine's `GetRecords` returns it. */
export interface EngineRecord extends RawStreamRecord {
  readonly dynamodb: NonNullable<RawStreamRecord["dynamodb"]> & {
    readonly Keys: AttributeMap;
    readonly SequenceNumber: string;
  };
}

/** A shard that exists only in front of the engine: the records of some partition keys. */
export interface VirtualShard {
  readonly id: string;
  readonly parentId: string | undefined;
  /** The hashes that it holds: from `least`, before `end`. */
  readonly hashes: { readonly least: number; readonly end: number };
  /** The index of the first record of the stream that it may hold. */
  readonly from: number;
  /** The index behind its last record; undefined while it is open. */
  readonly to: number | undefined;
}

/** A page of a shard. */
export interface ShardPage {
  readonly records: readonly EngineRecord[];
  /** Where the next page begins; undefined when the shard is closed and has no more. */
  readonly next: number | undefined;
}

/** An error of the streams API, by its name. */
export class StreamError extends Error {
  constructor(name: string) {
    super(name);
    this.name = name;
  }
}

/** Partition keys are hashed into this many classes. */
const HASHES = 0x10000;

/**
 * The one stream of an engine, presented as several shards. As on AWS, an item's changes are in one
 * shard, in order; a shard that is split ends, and two others go on in its place.
 */
export class VirtualStream {
  readonly #records: EngineRecord[] = [];
  #shards: VirtualShard[];
  #trimmed = 0;

  constructor(shards: number) {
    this.#shards = Array.from({ length: shards }, (_, index) => ({
      id: shardId(index),
      parentId: undefined,
      hashes: {
        least: Math.floor((index * HASHES) / shards),
        end: Math.floor(((index + 1) * HASHES) / shards),
      },
      from: 0,
      to: undefined,
    }));
  }

  get shards(): readonly VirtualShard[] {
    return this.#shards;
  }

  /** How many records the engine's stream has shown. */
  get length(): number {
    return this.#records.length;
  }

  get lastSequenceNumber(): string {
    return this.#records.at(-1)?.dynamodb.SequenceNumber ?? "0";
  }

  append(records: readonly EngineRecord[]): void {
    this.#records.push(...records);
  }

  /** Closes a shard behind what it holds now; two new ones share its keys from here on. */
  split(id: string): void {
    const shard = this.#shard(id);
    if (shard.to !== undefined) throw new Error(`${id} is closed`);
    const { least, end } = shard.hashes;
    const middle = (least + end) >> 1;
    const from = this.#records.length;
    this.#shards = this.#shards.map((each) => (each === shard ? { ...shard, to: from } : each));
    for (const hashes of [
      { least, end: middle },
      { least: middle, end },
    ]) {
      const child = { id: shardId(this.#shards.length), parentId: id, hashes, from, to: undefined };
      this.#shards.push(child);
    }
  }

  /** Forgets the first records of the stream, as AWS does after a day. */
  trim(records: number): void {
    this.#trimmed = Math.max(this.#trimmed, records);
  }

  /** The sequence numbers of a shard, as `DescribeStream` shows them. */
  buildRange({ from, to }: VirtualShard): object {
    const number = (index: number): string =>
      this.#records[index]?.dynamodb.SequenceNumber ?? String(index + 1);
    return {
      StartingSequenceNumber: number(from),
      ...(to !== undefined && { EndingSequenceNumber: number(Math.max(from, to - 1)) }),
    };
  }

  /** Where reading a shard begins. */
  start(id: string, type: string, sequenceNumber: string | undefined): number {
    const { from, to } = this.#shard(id);
    if (type === "TRIM_HORIZON") return Math.max(from, this.#trimmed);
    if (type === "LATEST") return to ?? this.#records.length;
    const wanted = BigInt(sequenceNumber ?? "0");
    const index = this.#records.findIndex(({ dynamodb }) => {
      const number = BigInt(dynamodb.SequenceNumber);
      return type === "AT_SEQUENCE_NUMBER" ? number >= wanted : number > wanted;
    });
    const start = Math.max(from, index < 0 ? this.#records.length : index);
    if (start < this.#trimmed) throw new StreamError("TrimmedDataAccessException");
    return start;
  }

  /** Records of a shard from an index on, at most so many. */
  page(id: string, start: number, limit: number): ShardPage {
    const { to, hashes } = this.#shard(id);
    if (start < this.#trimmed) throw new StreamError("TrimmedDataAccessException");
    const end = to ?? this.#records.length;
    const records: EngineRecord[] = [];
    let index = start;
    for (; index < end && records.length < limit; index += 1) {
      const record = this.#records[index]!;
      const hash = hashItem(record.dynamodb.Keys);
      if (hash >= hashes.least && hash < hashes.end) records.push(record);
    }
    return { records, next: to !== undefined && index >= to ? undefined : index };
  }

  #shard(id: string): VirtualShard {
    const found = this.#shards.find((shard) => shard.id === id);
    if (found === undefined) throw new StreamError("ResourceNotFoundException");
    return found;
  }
}

/** Shard ids have at least 28 characters. */
function shardId(index: number): string {
  return `shardId-${String(index + 1).padStart(20, "0")}-virtual`;
}

/** As in DynamoDB, the partition key alone decides (FNV-1a). */
function hashItem({ PK }: AttributeMap): number {
  let hash = 0x811c9dc5;
  for (const character of PK !== undefined && "S" in PK ? PK.S : "")
    hash = Math.imul(hash ^ character.codePointAt(0)!, 0x01000193);
  return (hash ^ (hash >>> 16)) & (HASHES - 1);
}
