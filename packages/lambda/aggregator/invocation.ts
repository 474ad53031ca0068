import {
  parseStreamRecord,
  type Aggregator,
  type ProcessOptions,
  type RawStreamRecord,
} from "zae-limiter/aggregator";
import { computeWorkTimeMs, type LambdaContext } from "../runtime/lambda-context.ts";
import { failureLines, skippedLine } from "./log-lines.ts";
import { metricsLine } from "./metrics.ts";

/** The answer to a batch: Lambda delivers everything from the first of these on again. */
export interface BatchResponse {
  readonly batchItemFailures: readonly { readonly itemIdentifier: string }[];
}

/** What an invocation needs of the process. */
export interface InvocationContext {
  readonly aggregator: Pick<Aggregator, "process" | "pulse">;
  readonly tableName: string;
  /** Prints one line. */
  readonly print: (line: string) => void;
  readonly now: () => number;
}

/**
 * The last operation must end in time: 20 s for an object of the archive, less for a write. Lambda
 * would end the process, and deliver the whole batch again.
 */
const RESERVED_MS = 25_000;

const NO_FAILURES: BatchResponse = { batchItemFailures: [] };

/**
 * Does what an event asks for: a batch of the table's stream is processed, and a schedule writes a
 * pulse. An error here makes Lambda deliver the whole batch again.
 */
export async function invoke(
  event: unknown,
  { aggregator, tableName, print, now }: InvocationContext,
  lambda: LambdaContext = {},
): Promise<BatchResponse> {
  if (isSchedule(event)) {
    await aggregator.pulse();
    return NO_FAILURES;
  }
  if (!isBatch(event))
    throw new Error(
      "The event is neither a batch of a DynamoDB stream nor one of a schedule: check what invokes this function.",
    );
  const records = event.Records.flatMap((record) => parseStreamRecord(record) ?? []);
  const unread = event.Records.length - records.length;
  if (unread > 0) print(skippedLine(unread));
  const report = await aggregator.process(records, timeFor(lambda));
  for (const line of failureLines(report.failures)) print(line);
  print(metricsLine({ ...report, skipped: report.skipped + unread }, tableName, now()));
  return {
    batchItemFailures: report.failures.map(({ sequenceNumber }) => ({
      itemIdentifier: sequenceNumber,
    })),
  };
}

function timeFor(lambda: LambdaContext): ProcessOptions {
  const withinMs = computeWorkTimeMs(lambda, RESERVED_MS);
  return withinMs === undefined ? {} : { withinMs };
}

/** The sources of what EventBridge sends by a schedule: by a rule, and by its Scheduler. */
const SCHEDULES: ReadonlySet<unknown> = new Set(["aws.events", "aws.scheduler"]);

function isSchedule(event: unknown): boolean {
  return SCHEDULES.has((event as { readonly source?: unknown } | null)?.source);
}

function isBatch(event: unknown): event is { readonly Records: readonly RawStreamRecord[] } {
  return Array.isArray((event as { readonly Records?: unknown } | null)?.Records);
}
