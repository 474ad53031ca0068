/*
 * npm run simulate -- --seeds 1000000          many seeds
 * npm run simulate -- --seed 4711              one seed, to see a failure again
 * npm run simulate -- --seeds 1000 --from 5000 seeds 5000 to 5999
 */
import { parseArgs } from "node:util";
import { memoryBackend } from "./memory-backend.ts";
import { runSeeds } from "./run.ts";

const DEFAULT_SEEDS = 10_000;

/** Seeds between two signs of life. */
const REPORT_EVERY = 10_000;

const { values } = parseArgs({
  options: { seed: { type: "string" }, seeds: { type: "string" }, from: { type: "string" } },
});
const first = whole(values.seed ?? values.from ?? "1", "--from");
const count =
  values.seed === undefined ? whole(values.seeds ?? String(DEFAULT_SEEDS), "--seeds") : 1;

const totals = new Map<string, number>();
let steps = 0;
for (let done = 0; done < count; done += REPORT_EVERY) {
  const report = await runSeeds(memoryBackend, {
    first: first + done,
    count: Math.min(REPORT_EVERY, count - done),
  });
  steps += report.steps;
  for (const [situation, times] of report.coverage.counts)
    totals.set(situation, (totals.get(situation) ?? 0) + times);
  if (report.failure !== undefined) {
    console.error(report.failure.story);
    console.error(`Again: npm run simulate -- --seed ${report.failure.seed}`);
    process.exitCode = 1;
    break;
  }
  console.error(
    `${done + report.seeds} seeds, ${steps} steps, ${Math.round(process.cpuUsage().user / 1e6)} s of CPU`,
  );
}
for (const [situation, times] of totals) console.log(`${String(times).padStart(10)}  ${situation}`);

function whole(text: string, option: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 0)
    throw new Error(`${option} wants a whole number, not '${text}'`);
  return value;
}
