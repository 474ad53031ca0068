import type { Amounts } from "zae-limiter";
import { countKey, type Count, type Counts } from "./call-log.ts";
import { BUCKETS, KEYS, PROJECT, type DemoBucket } from "./scenario.ts";
import { barText, numberText, tableText, type Paint } from "./text.ts";

/** What the live view shows at one moment. */
export interface Moment {
  readonly elapsedMs: number;
  readonly lengthMs: number;
  readonly counts: Counts;
  /** By `countKey`. */
  readonly available: ReadonlyMap<string, Amounts>;
}

/** With a bar of this width a line fits into 80 cells. */
const BAR_CELLS = 8;
const NUMBER_CELLS = 7;

/** The live view: calls granted and refused, tokens available and debt, by key and model. */
export function viewText({ elapsedMs, lengthMs, counts, available }: Moment, paint: Paint): string {
  const rows = BUCKETS.map((bucket) => {
    const { granted, refused, failed } = countOf(bucket, counts);
    const left = available.get(countKey(bucket.entityId, bucket.model)) ?? {};
    const capacity = bucket.limits.find(({ name }) => name === "tpm")!.capacity;
    const tokens = left["tpm"] ?? capacity;
    return [
      bucket.entityId,
      bucket.model,
      granted,
      refused,
      failed,
      tokensText(tokens, capacity),
      Math.max(0, -tokens),
    ];
  });
  const headers = ["Key", "Model", "Granted", "Refused", "Failed", "Tokens available", "Debt"];
  const time = `${(elapsedMs / 1000).toFixed(1)} s of ${numberText(lengthMs / 1000)} s`;
  const title = paint("bold", "Two processes, three keys, one project, one file");
  return `${title}   ${time}\n${tableText(headers, rows, paint)}`;
}

function tokensText(tokens: number, capacity: number): string {
  const left = Math.max(0, tokens);
  const bar = barText((left / capacity) * BAR_CELLS).padEnd(BAR_CELLS, "·");
  return `${bar} ${numberText(left).padStart(NUMBER_CELLS)}`;
}

/** The count of a key, or the sum over all keys for the project. */
function countOf({ entityId, model }: DemoBucket, counts: Counts): Count {
  const sum = { granted: 0, refused: 0, failed: 0 };
  for (const id of entityId === PROJECT ? KEYS : [entityId]) {
    const count = counts[countKey(id, model)];
    sum.granted += count?.granted ?? 0;
    sum.refused += count?.refused ?? 0;
    sum.failed += count?.failed ?? 0;
  }
  return sum;
}
