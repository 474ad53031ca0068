import { dynamoOptions } from "../opening/url.ts";
import type { AggregatorOptions } from "./aggregator.ts";

/**
 * Which table a URL names, as `openRepository` reads it; for `openAggregator` and `runAggregator`.
 *
 * @example
 * const options = tableOptions("dynamodb://eu-west-1/my-stack");
 */
export function tableOptions(
  url: string,
): Pick<AggregatorOptions, "stack" | "region" | "endpointUrl"> {
  // What a URL says about creating a table is left out: an aggregator creates none.
  const { provisioning: _, ...place } = dynamoOptions(url);
  return place;
}
