import type { BucketImage } from "../items/bucket-item.ts";
import { ExpressionBuilder, ItemUpdate } from "../table/update-expression.ts";
import { markOperation } from "./bucket-update.ts";
import { toIncarnation, type PlanRequest, type PlannedWrite } from "./write-plan.ts";

/**
 * A write that only puts a later id into the slot of writes without an answer, as the image shows
 * it, on an item that must exist. If it is applied, they were not and never will be; if its
 * condition fails, the reply shows what became of them (unanswered-writes.ts). It moves the counter
 * of write units, as every write does. Undefined when no slot is available.
 */
export function buildFence(
  image: BucketImage,
  { key, outcomes, nowMs, writeUnits }: FenceRequest,
): PlannedWrite | undefined {
  const mark = outcomes.mark(image.slots, nowMs);
  if (mark === undefined) return undefined;
  const builder = new ExpressionBuilder();
  builder.requireEqual("sv", image.version);
  builder.requireEqual("cr", image.creation);
  builder.add("b_wcu_tc", writeUnits);
  markOperation(builder, { ...mark, afterUnanswered: true });
  return {
    request: new ItemUpdate(key, builder),
    item: undefined,
    changed: undefined,
    mark,
    incarnation: toIncarnation(image),
    requires: { version: image.version, refilledAtMs: undefined },
  };
}

/** What a fence is made from. */
export type FenceRequest = Pick<PlanRequest, "key" | "outcomes" | "nowMs" | "writeUnits">;
