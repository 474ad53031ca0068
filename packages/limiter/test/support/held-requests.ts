import { seededRandom } from "zae-limiter/testing";
import { Connection, type Conditional } from "../../src/repository/dynamodb/table/connection.ts";
import { ItemReader } from "../../src/repository/dynamodb/table/item-reader.ts";
import {
  SharedRequests,
  type WriteOutput,
} from "../../src/repository/dynamodb/table/shared-requests.ts";
import type { AttributeMap } from "../../src/repository/dynamodb/transport/attribute-values.ts";
import type { DynamoTransport } from "../../src/repository/dynamodb/transport/transport.ts";
import { ManualClock } from "../../src/testing/fakes/manual-clock.ts";
import { heldAnswer, type HeldAnswer } from "./held-answer.ts";
import { shardKey } from "./shard-images.ts";

type ItemWrite = Parameters<SharedRequests["send"]>[0];

/** A request that waits for the test to answer it. */
export interface HeldRequest extends HeldAnswer<object> {
  readonly operation: string;
  readonly input: object;
  /** The entities whose buckets it is about. */
  readonly entities: readonly string[];
}

/** A transport that a test answers for, and one process that sends writes through it. */
export class HeldRequests implements DynamoTransport {
  /** All requests, also those that were answered. */
  readonly sent: HeldRequest[] = [];
  readonly clock = new ManualClock();
  readonly connection: Connection;
  readonly #requests: SharedRequests;

  constructor({
    isOn = true,
    maxRequests = 2,
  }: {
    readonly isOn?: boolean;
    readonly maxRequests?: number;
  } = {}) {
    this.connection = new Connection({
      transport: this,
      tableName: "limits",
      clock: this.clock,
      random: seededRandom(1),
      requestTimeoutMs: 60_000,
      maxAttempts: 3,
    });
    const reader = new ItemReader(this.connection);
    this.#requests = new SharedRequests({
      connection: this.connection,
      reader,
      isOn,
      maxRequests,
    });
  }

  call(operation: string, input: object): Promise<object> {
    const answer = heldAnswer<object>();
    this.sent.push({ operation, input, entities: entitiesIn(input), ...answer });
    return answer.promise;
  }

  close(): void {}

  /** Sends the write of a bucket, or any other. */
  send(
    write: string | ItemWrite,
    { isRetry = false }: { readonly isRetry?: boolean } = {},
  ): Promise<Conditional<WriteOutput>> {
    return this.#requests.send(typeof write === "string" ? getUpdate(write) : write, { isRetry });
  }

  /** Sends writes at once, and lets everything run that is ready. Failures are ignored. */
  async sendAll(...entities: readonly string[]): Promise<void> {
    for (const entity of entities) this.send(entity).catch(() => {});
    await turn();
  }

  /** What was sent since the request with this number, as texts such as `UpdateItem a`. */
  texts(since = 0): readonly string[] {
    return this.sent
      .slice(since)
      .map(({ operation, entities }) => [operation, ...entities].join(" "));
  }

  /** Answers a request: all its writes were applied. */
  async apply(number: number): Promise<void> {
    const { operation, entities, resolve } = this.sent.at(number)!;
    resolve(
      operation === "BatchExecuteStatement"
        ? { Responses: entities.map((entity) => ({ Item: buildItem(entity) })) }
        : { Attributes: buildItem(entities[0]!) },
    );
    await turn();
  }

  /** Answers a shared request with a reply to each statement. */
  async reply(number: number, ...Responses: readonly (object | null)[]): Promise<void> {
    this.sent.at(number)!.resolve({ Responses });
    await turn();
  }
}

/** An update of the bucket of an entity. */
export function getUpdate(entity: string): ItemWrite {
  const key = shardKey(0, entity);
  return {
    operation: "UpdateItem",
    key,
    input: (tableName) => ({
      TableName: tableName,
      Key: key.marshalled,
      UpdateExpression: "ADD gr 1",
    }),
    statement: (tableName) => ({
      Statement: `UPDATE "${tableName}" SET "gr"=gr+? WHERE "PK"=? AND "SK"=?`,
      Parameters: [{ N: "1" }, ...Object.values(key.marshalled)],
      ReturnValuesOnConditionCheckFailure: "ALL_OLD",
    }),
  };
}

/** The same, as one that PartiQL cannot express. */
export function inexpressible(entity: string): ItemWrite {
  return { ...getUpdate(entity), statement: () => undefined };
}

/** What replies show of it. */
export function buildItem(entity: string): AttributeMap {
  return { ...shardKey(0, entity).marshalled, gr: { N: "1" } };
}

/** Lets everything run that is ready. */
export async function turn(): Promise<void> {
  for (let turns = 0; turns < 2; turns += 1)
    await new Promise((resolve) => void setImmediate(resolve));
}

function entitiesIn(input: object): readonly string[] {
  const keys = JSON.stringify(input).matchAll(/BUCKET#([^#]+)#/g);
  return [...new Set([...keys].map(([, entity]) => entity!))];
}
