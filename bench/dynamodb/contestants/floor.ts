import type { UpdateItemInput } from "@aws-sdk/client-dynamodb";
import { isConditionFailure, type BillMeter } from "../bill.ts";
import { NEVER_REACHED, operate, type Case } from "../cases.ts";
import type { Contestant, ContestantId } from "./contestant.ts";

/** What the floor is measured with. */
export interface FloorOptions {
  readonly id: ContestantId;
  readonly name: string;
  readonly tableName: string;
  readonly meter: BillMeter;
  readonly put: (item: { readonly key: string; readonly tokens: number }) => Promise<unknown>;
  readonly update: (input: UpdateItemInput) => Promise<unknown>;
}

/**
 * What DynamoDB itself costs: take one token where there is one. With a parent, take one from both,
 * at the same time.
 */
export function floor({ id, name, tableName, meter, put, update }: FloorOptions): Contestant {
  const take = async (key: string): Promise<unknown> =>
    update({
      TableName: tableName,
      Key: { key: { S: key } },
      UpdateExpression: "ADD tk :taken",
      ConditionExpression: "tk >= :needed",
      ExpressionAttributeValues: { ":taken": { N: "-1" }, ":needed": { N: "1" } },
    });
  const operationOf = ({ parentId, exhausted }: Case): ((entityId: string) => Promise<void>) => {
    if (exhausted) return async (key) => take(key).then(unexpectedGrant, onlyRefused);
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
        await put({ key, tokens: race.exhausted ? 0 : NEVER_REACHED });
      const run = operate(race, operationOf(race));
      return { run, bill: async (operations) => meter.measured(async () => run(operations)) };
    },
    close: async () => {},
  };
}

function unexpectedGrant(): never {
  throw new Error("The floor was granted what should be refused");
}

function onlyRefused(error: unknown): void {
  if (!isConditionFailure(error)) throw error;
}
