export { openAggregator } from "./aggregator.ts";
export type { Aggregator, AggregatorOptions, BatchReport } from "./aggregator.ts";
export type { AuditArchive } from "./archive/archive.ts";
export { folderArchive } from "./archive/folder-archive.ts";
export { s3Archive } from "./archive/s3-archive.ts";
export type { S3ArchiveClient, S3ArchiveOptions } from "./archive/s3-archive.ts";
export type { RecordFailure } from "./part.ts";
export { streamRecordOf } from "./stream-record.ts";
export type { RawStreamRecord, StreamRecord } from "./stream-record.ts";
