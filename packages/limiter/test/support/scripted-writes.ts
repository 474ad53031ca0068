import { buildPolicy } from "../../src/core/bucket/policy.ts";
import { slotAttribute } from "../../src/repository/dynamodb/items/bucket-item.ts";
import type { AttributeMap } from "../../src/repository/dynamodb/transport/attribute-values.ts";
import {
  OperationIds,
  type OperationMark,
} from "../../src/repository/dynamodb/write/operation-ids.ts";
import type { WriteIntent } from "../../src/repository/dynamodb/write/write-intent.ts";
import type { WriteMarker } from "../../src/repository/dynamodb/write/write-plan.ts";
import { seededRandom } from "zae-limiter/testing";
import { createError, scriptedProcess, type ScriptedProcess } from "./scripted-table.ts";
import { shardImage, shardItem, shardKey, TPM, type StoredShard } from "./shard-images.ts";

/** The shard that these writes are for. */
export const KEY = shardKey();

/** The policy that they are decided with. */
export const POLICY = buildPolicy([TPM], "resource");

/** A connection that died: it is unknown whether the write was applied. */
export const LOST = createError("Error", { code: "ECONNRESET" });

/** A take of this many millitokens. */
export function take(tpm: number): WriteIntent {
  return { kind: "take", costs: { tpm }, isCascaded: false, requests: 1, policy: POLICY };
}

/** Marks writes. If `pending` is given, that write has no answer yet. */
export function newMarker(pending?: Pick<OperationMark, "slot">): WriteMarker {
  const ids = new OperationIds(seededRandom(1));
  return { mark: (slots, nowMs) => ids.next(slots, { nowMs, pending }) };
}

/** The attributes of operation ids, in the order of the slots. */
export function slotAttributes(ids: readonly string[]): AttributeMap {
  return Object.fromEntries(ids.map((id, slot) => [slotAttribute(slot), { S: id }]));
}

/** The writer of a process that knows a shard as it is stored. */
export function newWriter(
  image: StoredShard | undefined,
  options: Parameters<typeof scriptedProcess>[0] = {},
): ScriptedProcess {
  const made = scriptedProcess(options);
  if (image === undefined) return made;
  made.table.put(shardItem(image));
  made.known.remember(KEY, shardImage(image), made.known.stampRequest());
  return made;
}
