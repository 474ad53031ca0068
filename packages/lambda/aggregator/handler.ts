import { openAggregator, s3Archive } from "zae-limiter/aggregator";
import { leanTransport } from "zae-limiter/dynamodb";
import type { LambdaContext } from "../runtime/lambda-context.ts";
import { printLine } from "../runtime/log-line.ts";
import { invoke, type BatchResponse, type InvocationContext } from "./invocation.ts";
import { readSettings, type Settings } from "./settings.ts";

/*
 * The entry point of the function. It checks its environment and creates its clients once, at the
 * start, while Lambda gives the process a whole CPU.
 */
const context = await buildContext(readSettings(process.env));

/** The function that Lambda calls. */
export function handler(event: unknown, lambda: LambdaContext): Promise<BatchResponse> {
  return invoke(event, context, lambda);
}

async function buildContext({
  tableName,
  windows,
  bucketTtlMultiplier,
  usageRetentionDays,
  region,
  dynamodbUrl,
  archive,
}: Settings): Promise<InvocationContext> {
  const transport = await leanTransport({ region, ...toEndpointOption(dynamodbUrl) });
  const aggregator = await openAggregator({
    stack: tableName,
    transport,
    windows,
    ...(bucketTtlMultiplier !== undefined && { bucketTtlMultiplier }),
    ...(usageRetentionDays !== undefined && { usageRetentionDays }),
    ...(archive !== undefined && {
      archive: await s3Archive(`s3://${archive.bucket}`, {
        region,
        ...toEndpointOption(archive.endpointUrl),
      }),
    }),
  });
  return {
    aggregator,
    tableName,
    print: printLine,
    now: Date.now,
  };
}

function toEndpointOption(endpointUrl: string | undefined): { readonly endpointUrl?: string } {
  return endpointUrl === undefined ? {} : { endpointUrl };
}
