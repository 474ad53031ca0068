export { findArtillery, type Artillery } from "./find-artillery.ts";
export { findHighestRate, type RateSearch, type Trial } from "./find-highest-rate.ts";
export type { Generator } from "./judge-generator.ts";
export type { CallRow, Latency, LoadReport, PeriodRow, RunName } from "./load-report.ts";
export { LoadTestError } from "./load-test-error.ts";
export {
  describeVerdict,
  listFacts,
  listTables,
  periodCells,
  PERIOD_HEADERS,
  type ReportTable,
} from "./report-rows.ts";
export {
  checkLoadTest,
  runLoadTest,
  verifyRun,
  type LoadTest,
  type Surroundings,
} from "./run-load-test.ts";
