import type { Amounts, RateLimit } from "zae-limiter";
import { countKey, type Count, type Counts } from "./call-log.ts";
import { BUCKETS, KEYS, MODELS, PROJECT, type DemoBucket } from "./scenario.ts";
import { barText, numberText, tableText, wrapText, type Paint } from "./text.ts";

/** What the live view shows at one moment. */
export interface Moment {
  readonly elapsedMs: number;
  readonly lengthMs: number;
  readonly counts: Counts;
  /** By `countKey`. */
  readonly available: ReadonlyMap<string, Amounts>;
}

/** The widths of bars and of numbers with which a line fits into 60 cells. */
const BAR_CELLS = 4;
const NUMBER_CELLS: Readonly<Record<string, number>> = { rpm: 3, tpm: 7 };

/** What the live view is about: printed once, above it. */
export function introText(columns: number, paint: Paint): string {
  const sentence =
    "Two processes share one SQLite file. Three keys of one project call two models, and ask for " +
    "far more than the limits allow: most calls are refused, which is what is wanted here. A call " +
    "takes from its key and from the project, and is refused when either of them runs out.";
  const rows = MODELS.flatMap(({ name, limits }) => [
    [name, "each key", ...limits.ofKey.map(rateText)],
    [name, "project", ...limits.ofProject.map(rateText)],
  ]);
  const table = tableText(["Model", "Limits of", "rpm (burst)", "tpm (burst)"], rows, paint);
  return `${wrapText(sentence, columns)}\n\n${table}\n`;
}

/**
 * The live view: calls granted and refused, and what is left of every limit, by model and key. A
 * limit below zero is in debt.
 */
export function viewText({ elapsedMs, lengthMs, counts, available }: Moment, paint: Paint): string {
  const time = `${(elapsedMs / 1000).toFixed(1)} s of ${numberText(lengthMs / 1000)} s`;
  const tables = MODELS.map(({ name }) => {
    const rows = BUCKETS.filter(({ model }) => model === name).map((bucket) => {
      const { granted, refused } = sumCounts(bucket, counts);
      const left = available.get(countKey(bucket.entityId, bucket.model)) ?? {};
      const balances = bucket.limits.map((limit) => balanceText(limit, left));
      const counted: (string | number)[] = [bucket.entityId, granted, refused];
      return counted.concat(balances);
    });
    return tableText([name, "Granted", "Refused", "rpm left", "tpm left"], rows, paint);
  });
  return `${time}\n${tables.join("")}`;
}

function balanceText({ name, capacity }: RateLimit, available: Amounts): string {
  const left = available[name] ?? capacity;
  const bar = barText((Math.max(0, left) / capacity) * BAR_CELLS).padEnd(BAR_CELLS, "·");
  return `${bar} ${numberText(left).padStart(NUMBER_CELLS[name] ?? 0)}`;
}

/** A rate and what can be taken at once: 600/min (20). */
function rateText({ refillAmount, capacity }: RateLimit): string {
  return `${numberText(refillAmount)}/min (${numberText(capacity)})`;
}

/** The count of a key, or the sum over all keys for the project. */
function sumCounts({ entityId, model }: DemoBucket, counts: Counts): Count {
  const sum = { granted: 0, refused: 0, failed: 0 };
  for (const id of entityId === PROJECT ? KEYS : [entityId]) {
    const count = counts[countKey(id, model)];
    sum.granted += count?.granted ?? 0;
    sum.refused += count?.refused ?? 0;
    sum.failed += count?.failed ?? 0;
  }
  return sum;
}
