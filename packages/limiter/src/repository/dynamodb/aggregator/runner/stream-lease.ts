/*
 * Which runner reads the stream, and how far it is: one item of the table.
 *
 *   owner             S  the runner that reads the stream; absent when none does
 *   lease_until_ms    N  when that runner has to have renewed its lease, or lost it
 *   stream            S  the label of the stream that the shards belong to
 *   shards            M  by the id of each shard: its checkpoint, or that it is finished
 *   counted_until_ms  N  everything that was written before this time has been processed
 *   ttl               N  the stream keeps its records for a day, so the item may go soon after
 *
 *   free ──take──▶ held ──renew, with the checkpoints──▶ held ──release──▶ free
 *                   └──the lease ends──▶ free, for the next runner that takes it
 *
 * Checkpoints are in the item of the lease, so the owner alone can move them, and a parent is
 * finished in the same write in which its children may begin. An owner that was paused for longer
 * than its lease may still process a batch: that is harmless, because each snapshot refuses what it
 * has counted. An item has room for the checkpoints of some thousand shards, far more than one
 * process can read.
 */
import { namespaceIndexKeys, streamLeaseKey, TABLE_NAMESPACE } from "../../items/keys.ts";
import { marshalKey } from "../../table/batch.ts";
import type { Connection } from "../../table/connection.ts";
import { ExpressionBuilder } from "../../table/update-expression.ts";
import {
  getBoolean,
  getNumber,
  getString,
  type AttributeMap,
  type Value,
} from "../../transport/attribute-values.ts";
import type { StreamProgress } from "./reading-order.ts";

/** How far the stream was read. */
export interface StoredProgress {
  readonly shards: StreamProgress;
  /** Until when everything in the stream is counted, as far as that is known. */
  readonly countedUntilMs: number | undefined;
}

/**
 * How long a lease lasts. With clocks that are 4 s apart (each is corrected to within 2 s of the
 * server's) and runners that look every 4 s, the stream is read again 20 s after its runner died.
 */
const LEASE_MS = 12_000;

/** How often a lease is renewed: two renewals may fail. */
export const RENEW_EVERY_MS = 4000;

const KEPT_SECONDS = 3 * 24 * 60 * 60;

const KEY = streamLeaseKey();

/** The lease of one runner. */
export class StreamLease {
  readonly #connection: Connection;
  readonly #runnerId: string;
  readonly #streamLabel: string;
  #untilMs = -Infinity;

  constructor(options: {
    readonly connection: Connection;
    readonly runnerId: string;
    readonly streamLabel: string;
  }) {
    this.#connection = options.connection;
    this.#runnerId = options.runnerId;
    this.#streamLabel = options.streamLabel;
  }

  /** Whether this runner may read: it has the lease, and the lease has not ended. */
  get isHeld(): boolean {
    return this.#connection.clock.now() < this.#untilMs;
  }

  /** Takes the lease if it is free, and returns how far the stream was read in any case. */
  async take(): Promise<StoredProgress> {
    const { item } = await this.#write((expression) => {
      expression.set("owner", this.#runnerId);
      for (const [name, value] of Object.entries(namespaceIndexKeys(TABLE_NAMESPACE, KEY)))
        expression.set(name, value as string);
      const owner = expression.name("owner");
      const nowMs = expression.value(this.#connection.clock.now());
      expression.require(
        `(attribute_not_exists(${owner}) OR ${owner}=${expression.value(this.#runnerId)} ` +
          `OR ${expression.name("lease_until_ms")}<${nowMs})`,
      );
    });
    return parseProgress(item, this.#streamLabel);
  }

  /** Renews the lease and stores how far its owner is; false when the lease is lost. */
  async renew(progress: StoredProgress): Promise<boolean> {
    const { applied } = await this.#write((expression) => {
      this.#setProgress(expression, progress);
      expression.requireEqual("owner", this.#runnerId);
    });
    return applied;
  }

  /** Stores how far its owner is and gives the lease back; false when it is lost. */
  async release(progress: StoredProgress): Promise<boolean> {
    if (this.#untilMs === -Infinity) return false;
    const { applied } = await this.#write((expression) => {
      this.#setProgress(expression, progress);
      expression.remove("owner");
      expression.requireEqual("owner", this.#runnerId);
    });
    this.#untilMs = -Infinity;
    return applied;
  }

  #setProgress(expression: ExpressionBuilder, { shards, countedUntilMs }: StoredProgress): void {
    expression.set("stream", this.#streamLabel);
    expression.set("shards", buildShards(shards));
    if (countedUntilMs === undefined) expression.remove("counted_until_ms");
    else expression.set("counted_until_ms", countedUntilMs);
  }

  /** Writes with a new end of the lease; returns the item, also when the condition failed. */
  async #write(
    change: (expression: ExpressionBuilder) => void,
  ): Promise<{ readonly applied: boolean; readonly item: AttributeMap }> {
    const nowMs = this.#connection.clock.now();
    const expression = new ExpressionBuilder();
    expression.set("lease_until_ms", nowMs + LEASE_MS);
    expression.set("ttl", Math.floor(nowMs / 1000) + KEPT_SECONDS);
    change(expression);
    const written = await this.#connection.repeatConditional<{ Attributes?: AttributeMap }>(
      "UpdateItem",
      {
        Key: marshalKey(KEY),
        ...expression.build(),
        ReturnValues: "ALL_NEW",
        ReturnValuesOnConditionCheckFailure: "ALL_OLD",
      },
    );
    this.#untilMs = written.applied ? nowMs + LEASE_MS : -Infinity;
    const item = written.applied ? written.output.Attributes : written.item;
    return { applied: written.applied, item: item ?? {} };
  }
}

function buildShards(shards: StreamProgress): Record<string, Value> {
  return Object.fromEntries(
    [...shards].map(([shardId, { sequenceNumber, isFinished }]) => [
      shardId,
      isFinished
        ? { finished: true }
        : { ...(sequenceNumber !== undefined && { sequence_number: sequenceNumber }) },
    ]),
  );
}

/** A stream that was enabled anew may use the names of shards again. */
function parseProgress(item: AttributeMap, streamLabel: string): StoredProgress {
  const { stream, shards } = item;
  if (getString(stream) !== streamLabel || shards === undefined || !("M" in shards))
    return { shards: new Map(), countedUntilMs: undefined };
  return {
    shards: new Map(
      Object.entries(shards.M).map(([shardId, value]) => {
        const stored = "M" in value ? value.M : {};
        return [
          shardId,
          {
            sequenceNumber: getString(stored["sequence_number"]),
            countedUntilMs: undefined,
            isFinished: getBoolean(stored["finished"]) ?? false,
          },
        ];
      }),
    ),
    countedUntilMs: getNumber(item["counted_until_ms"]),
  };
}
