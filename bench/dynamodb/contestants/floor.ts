import type { CreateTableInput, PutItemInput, UpdateItemInput } from "@aws-sdk/client-dynamodb";
import { isConditionFailure, type BillMeter } from "../bill.ts";
import { NEVER_REACHED, operate, type Case } from "../cases.ts";
import type { Contestant, ContestantId } from "./contestant.ts";

/** What the floor is measured with. */
export interface FloorOptions {
  readonly id: ContestantId;
  readonly name: string;
  readonly tableName: string;
  readonly meter: BillMeter;
  readonly put: (input: PutItemInput) => Promise<unknown>;
  readonly update: (input: UpdateItemInput) => Promise<unknown>;
}

/**
 * What DynamoDB itself costs: take one token where there is one. With a parent, take one from both,
 * at the same time.
 */
export function floor({ id, name, tableName, meter, put, update }: FloorOptions): Contestant {
  const take = async (key: string): Promise<unknown> => update(takeOne(tableName, key));
  const buildOperation = ({ parentId, exhausted }: Case): ((entityId: string) => Promise<void>) => {
    if (exhausted) return async (key) => take(key).then(throwUnexpectedGrant, onlyRefused);
    if (parentId !== undefined)
      return async (key) => void (await Promise.all([take(key), take(parentId)]));
    return async (key) => void (await take(key));
  };
  return {
    id,
    name,
    enter: async (race) => {
      for (const key of [
        ...race.entityIds,
        ...(race.parentId === undefined ? [] : [race.parentId]),
      ])
        await put(buildCounter(tableName, { key, tokens: race.exhausted ? 0 : NEVER_REACHED }));
      const run = operate(race, buildOperation(race));
      return { run, bill: async (operations) => meter.measure(async () => run(operations)) };
    },
    close: async () => {},
  };
}

/** Takes one token where there is one. */
export function takeOne(tableName: string, key: string): UpdateItemInput {
  return {
    TableName: tableName,
    Key: { key: { S: key } },
    UpdateExpression: "ADD tk :taken",
    ConditionExpression: "tk >= :needed",
    ExpressionAttributeValues: { ":taken": { N: "-1" }, ":needed": { N: "1" } },
  };
}

/** A table of bare counters by key. */
export function bareTable(tableName: string): CreateTableInput {
  return {
    TableName: tableName,
    AttributeDefinitions: [{ AttributeName: "key", AttributeType: "S" }],
    KeySchema: [{ AttributeName: "key", KeyType: "HASH" }],
    BillingMode: "PAY_PER_REQUEST",
  };
}

/** A counter that holds so many tokens. */
export function buildCounter(
  tableName: string,
  { key, tokens }: { readonly key: string; readonly tokens: number },
): PutItemInput {
  return { TableName: tableName, Item: { key: { S: key }, tk: { N: String(tokens) } } };
}

function throwUnexpectedGrant(): never {
  throw new Error("The floor was granted what should be refused");
}

function onlyRefused(error: unknown): void {
  if (!isConditionFailure(error)) throw error;
}
