import {
  openAggregator,
  parseStreamRecord,
  type Aggregator,
  type RawStreamRecord,
} from "zae-limiter/aggregator";
import type { DynamoClient, DynamoTransport } from "zae-limiter/dynamodb";
import type { BillMeter } from "../dynamodb/bill.ts";
import { measureTime, type Cost } from "../harness.ts";
import type { BucketRecords } from "./bucket-records.ts";
import type { Case, Contestant } from "./contestant.ts";

/** Ours on one connection, which its opener closes. */
export async function ours(options: {
  readonly id: "ours-lean" | "ours-sdk";
  readonly name: string;
  readonly stack: string;
  readonly records: BucketRecords;
  readonly meter: BillMeter;
  readonly connection: { readonly client: DynamoClient } | { readonly transport: DynamoTransport };
}): Promise<Contestant> {
  const { id, name, stack, records, meter, connection } = options;
  const aggregator = await openAggregator({ ...connection, stack, region: "us-east-1" });
  return {
    id,
    name,
    enter: async (race) => {
      const next = makeNext(records, race);
      const run = async (count: number): Promise<Cost> => {
        let [wallNs, cpuNs] = [0, 0];
        for (let left = count; left > 0; left -= race.batch) {
          const batch = Array.from({ length: Math.min(race.batch, left) }, next);
          const cost = await measureTime(async () => process(aggregator, batch));
          wallNs += cost.wallNs;
          cpuNs += cost.cpuNs;
        }
        return { wallNs, cpuNs };
      };
      return {
        run,
        bill: async (count) => meter.measure(async () => void (await run(count))),
      };
    },
    close: async () => aggregator.close(),
  };
}

/** Processes a batch as a Lambda function does; what fails ends the benchmark. */
export async function process(
  aggregator: Aggregator,
  batch: readonly RawStreamRecord[],
): Promise<void> {
  const records = batch.flatMap((raw) => parseStreamRecord(raw) ?? []);
  const { counted, failures } = await aggregator.process(records);
  if (failures.length > 0) throw failures[0]!.error;
  if (counted !== batch.length) throw new Error(`${counted} of ${batch.length} records counted`);
}

function makeNext(records: BucketRecords, { id, entities }: Case): () => RawStreamRecord {
  let made = 0;
  return () => {
    made += 1;
    return records.next(`${id}-${made % entities}`);
  };
}
