export { openAggregator } from "./aggregator.ts";
export type { Aggregator, AggregatorOptions, BatchReport } from "./aggregator.ts";
export type { AuditArchive } from "./archive/archive.ts";
export type { RecordFailure } from "./part.ts";
export { streamRecordOf } from "./stream-record.ts";
export type { RawStreamRecord, StreamRecord } from "./stream-record.ts";
