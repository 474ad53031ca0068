/*
 * rate-limiter-flexible counts in fixed windows, one item per limiter and key. It has neither two
 * limits in one item nor parents, so two limits are its union, and a child of a parent are two
 * calls.
 */
import type { DynamoDB } from "@aws-sdk/client-dynamodb";
import { RateLimiterDynamo, RateLimiterUnion } from "rate-limiter-flexible";
import type { BillMeter } from "../bill.ts";
import { NEVER_REACHED, operate, type Case } from "../cases.ts";
import type { Contestant, ContestantId } from "./contestant.ts";

/** What the peer is measured with. */
export interface PeerOptions {
  readonly client: DynamoDB;
  readonly tableName: string;
  readonly meter: BillMeter;
}

const DAY_SECONDS = 86_400;

/** The peer's contestants; each enters only the cases that it can do. */
export function peers(options: PeerOptions): readonly Contestant[] {
  return [
    contestant(options, "peer-single", {
      name: "rate-limiter-flexible, one limit",
      buildOperation: ({ parentId, exhausted }) => {
        if (parentId !== undefined) return undefined;
        if (exhausted) return buildRefusing(store(options, "refusing", { points: 1 }));
        const limiter = store(options, "single");
        return async (entityId) => void (await limiter.consume(entityId, 1));
      },
    }),
    contestant(options, "peer-blocking", {
      name: "rate-limiter-flexible, in-memory block",
      buildOperation: ({ exhausted }) =>
        exhausted &&
        buildRefusing(store(options, "blocking", { points: 1, inMemoryBlockOnConsumed: 1 })),
    }),
    contestant(options, "peer-union", {
      name: "rate-limiter-flexible, union of two",
      buildOperation: ({ parentId, exhausted }) => {
        if (parentId !== undefined || exhausted) return undefined;
        const limiter = new RateLimiterUnion(
          store(options, "union-rpm"),
          store(options, "union-tpm"),
        );
        return async (entityId) => void (await limiter.consume(entityId, 1));
      },
    }),
    contestant(options, "peer-two-calls", {
      name: "rate-limiter-flexible, two calls",
      buildOperation: ({ parentId }) => {
        if (parentId === undefined) return undefined;
        const limiter = store(options, "family");
        return async (entityId) =>
          void (await Promise.all([limiter.consume(entityId, 1), limiter.consume(parentId, 1)]));
      },
    }),
  ];
}

type Operation = (entityId: string) => Promise<void>;

function contestant(
  { meter }: PeerOptions,
  id: ContestantId,
  {
    name,
    buildOperation,
  }: { readonly name: string; readonly buildOperation: (race: Case) => Operation | undefined },
): Contestant {
  return {
    id,
    name,
    enter: async (race) => {
      const operation = buildOperation(race);
      if (operation === undefined) return undefined;
      const run = operate(race, operation);
      // The first call of each key is granted where all others are refused, and creates the item in
      // every case.
      await operate(race, async (entityId) => operation(entityId).catch(() => {}))(
        race.entityIds.length,
      );
      return { run, bill: async (operations) => meter.measure(async () => run(operations)) };
    },
    close: async () => {},
  };
}

function store(
  { client, tableName }: PeerOptions,
  keyPrefix: string,
  limits: { readonly points?: number; readonly inMemoryBlockOnConsumed?: number } = {},
): RateLimiterDynamo {
  return new RateLimiterDynamo({
    storeClient: client,
    tableName,
    tableCreated: true,
    ttlSet: true,
    keyPrefix,
    points: NEVER_REACHED,
    duration: DAY_SECONDS,
    ...limits,
  });
}

/** It rejects with its state, which is not an error; an error is one. */
function buildRefusing(limiter: RateLimiterDynamo): Operation {
  return async (entityId) =>
    limiter.consume(entityId, 1).then(
      () => {
        throw new Error("rate-limiter-flexible granted what should be refused");
      },
      (reason: unknown) => {
        if (reason instanceof Error) throw reason;
      },
    );
}
