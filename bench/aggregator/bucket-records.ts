import { Limit, RateLimiter } from "zae-limiter";
import type { RawStreamRecord } from "zae-limiter/aggregator";
import { DynamoRepository, type DynamoTransport } from "zae-limiter/dynamodb";

type Image = Readonly<Record<string, Readonly<Record<string, string>>>>;

const NEVER_REACHED = 1_000_000_000;
const LIMITS = ["rpm", "tpm"];
const RESOURCE = "gpt-4";
const TEMPLATE = "template";
const STREAM = "arn:aws:dynamodb:us-east-1:000000000000:table/bench/stream/2026-11-01T00:00:00.000";

/** How many acquires of one entity there are in a second: a busy bucket that would not be split. */
const RECORDS_A_SECOND = 500;
const HOUR_MS = 3_600_000;

/**
 * Makes stream records as Lambda passes them in: of acquires that take one of each of two limits.
 * Their images begin with the bucket that one real acquire made, and go on as further acquires
 * would change it.
 */
export class BucketRecords {
  readonly #template: Image;
  readonly #startMs = Math.floor(Date.now() / HOUR_MS) * HOUR_MS - HOUR_MS;
  readonly #taken = new Map<string, number>();
  #made = 0;

  /** Opens a table, and makes the first bucket there. */
  static async open(transport: DynamoTransport, stack: string): Promise<BucketRecords> {
    const repository = await DynamoRepository.open("bench", {
      transport,
      stack,
      region: "us-east-1",
      provisioning: "table",
      stream: false,
    });
    await repository.setSystemDefaults(LIMITS.map((name) => Limit.perMinute(name, NEVER_REACHED)));
    const consume = Object.fromEntries(LIMITS.map((name) => [name, 1]));
    const limiter = new RateLimiter({ repository });
    await (await limiter.acquire({ entityId: TEMPLATE, resource: RESOURCE, consume })).commit();
    await repository.close();
    const { Items } = (await transport.call(
      "Scan",
      { TableName: stack },
      { signal: AbortSignal.timeout(10_000) },
    )) as { readonly Items: readonly Image[] };
    return new BucketRecords(Items.find(({ SK }) => SK!["S"] === "#STATE")!);
  }

  private constructor(template: Image) {
    this.#template = template;
  }

  /** The record of the next acquire of an entity. */
  next(entityId: string): RawStreamRecord {
    const taken = this.#taken.get(entityId) ?? 0;
    this.#taken.set(entityId, taken + 1);
    this.#made += 1;
    return {
      eventName: "MODIFY",
      eventSourceARN: STREAM,
      dynamodb: {
        ApproximateCreationDateTime: Math.floor(
          this.#startMs / 1000 + this.#made / RECORDS_A_SECOND,
        ),
        SequenceNumber: String(this.#made),
        OldImage: this.#image(entityId, taken),
        NewImage: this.#image(entityId, taken + 1),
      },
    };
  }

  /** Forgets an entity that no further record is made of. */
  forget(entityId: string): void {
    this.#taken.delete(entityId);
  }

  #image(entityId: string, taken: number): Image {
    const image: Record<string, Readonly<Record<string, string>>> = {};
    for (const [name, value] of Object.entries(this.#template))
      image[name] =
        value["S"]?.includes(TEMPLATE) === true
          ? { S: value["S"].replace(TEMPLATE, entityId) }
          : value;
    for (const limit of LIMITS) {
      image[`b_${limit}_tc`] = { N: String((1 + taken) * 1000) };
      image[`b_${limit}_tk`] = { N: String((NEVER_REACHED - 1 - taken) * 1000) };
    }
    image["gr"] = { N: String(1 + taken) };
    image["b_wcu_tc"] = { N: String(1 + taken) };
    return image;
  }
}
