import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { openAggregator } from "zae-limiter/aggregator";
import { printTable, whole } from "../harness.ts";
import { openLeanTransport } from "../dynamodb/transports.ts";
import { BucketRecords } from "./bucket-records.ts";
import { process as processBatch } from "./ours.ts";

const BATCH = 1000;
/**
 * Entities of one batch; the next batch has others. 200 batches have twice as many as an aggregator
 * remembers buckets of.
 */
const ENTITIES = 100;
const POINTS = 8;
const STACK = "bench-memory";

/**
 * Prints the heap after a collection at several points of a long stream, whose entities are always
 * new ones.
 */
export async function printMemory(endpointUrl: string, records: number): Promise<void> {
  const transport = await openLeanTransport({ endpointUrl });
  const made = await BucketRecords.open(transport, STACK);
  const aggregator = await openAggregator({ stack: STACK, region: "us-east-1", transport });
  const rows: (readonly string[])[] = [];
  const batches = Math.ceil(records / BATCH);
  const step = Math.ceil(batches / POINTS);
  for (let batch = 1; batch <= batches; batch += 1) {
    const toEntity = (index: number): string => `e${batch}-${index % ENTITIES}`;
    await processBatch(
      aggregator,
      Array.from({ length: BATCH }, (_, index) => made.next(toEntity(index))),
    );
    for (let index = 0; index < ENTITIES; index += 1) made.forget(toEntity(index));
    if (batch === 1 || batch % step === 0) {
      collectGarbage();
      const { heapUsed, rss } = process.memoryUsage();
      rows.push([
        whole(batch * BATCH),
        whole(batch * ENTITIES),
        megabytes(heapUsed),
        megabytes(rss),
      ]);
    }
  }
  aggregator.close();
  transport.close();
  printTable(["a long stream: records", "entities", "heap MB", "resident MB"], rows);
}

/** Without `--expose-gc`, which would make every benchmark of this process collect in between. */
function collectGarbage(): void {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  collect();
  collect();
}

function megabytes(bytes: number): string {
  return (bytes / 2 ** 20).toFixed(1);
}
