import { ValidationError } from "../../../core/errors.ts";
import type { DynamoOptions, ResolvedOptions } from "./options.ts";

const PARAMETERS: ReadonlySet<string> = new Set(["endpoint", "provisioning"]);

/**
 * Reads `dynamodb://{region}/{stack}?endpoint=…&provisioning=…`. Region and stack may be left out,
 * where the environment names them.
 *
 * @example
 * dynamodb://eu-west-1/my-stack
 * dynamodb://local/my-stack?endpoint=http://127.0.0.1:8000&provisioning=never
 */
export function dynamoOptions(text: string): DynamoOptions {
  const match = /^dynamodb:\/\/([a-z0-9-]*)(?:\/([^/?#]*))?\/?(?:\?([^#]*))?$/.exec(text);
  if (match === null)
    throw new ValidationError("url", text, "must look like dynamodb://eu-west-1/my-stack");
  const [, region, stack, query = ""] = match;
  const parameters = new URLSearchParams(query);
  const unknown = [...parameters.keys()].find((name) => !PARAMETERS.has(name));
  if (unknown !== undefined)
    throw new ValidationError(
      "url",
      text,
      `has an unknown parameter '${unknown}'; use ${[...PARAMETERS].join(" or ")}`,
    );
  const endpointUrl = parameters.get("endpoint");
  const provisioning = parameters.get("provisioning");
  return {
    ...(region && { region }),
    ...(stack && { stack }),
    ...(endpointUrl && { endpointUrl }),
    // Any other value is rejected where options are checked.
    ...(provisioning && { provisioning: provisioning as "stack" | "table" | "never" }),
  };
}

/**
 * Which table a URL names, as `openRepository` reads it; for what works on tables and stacks, such
 * as `runAggregator`.
 *
 * @example
 * const options = tableOptions("dynamodb://eu-west-1/my-stack");
 */
export function tableOptions(url: string): Pick<DynamoOptions, "stack" | "region" | "endpointUrl"> {
  // What a URL says about creating a table is left out: these create none.
  const { provisioning: _, ...place } = dynamoOptions(url);
  return place;
}

/** Says how to create a table that is missing: as URL, on the command line and in code. */
export function howToCreate({
  stackName,
  region,
  endpointUrl,
  namespace,
}: Pick<ResolvedOptions, "stackName" | "region" | "endpointUrl" | "namespace">): string {
  const endpoint = endpointUrl === undefined ? "" : `endpoint=${encodeURIComponent(endpointUrl)}&`;
  const url = `dynamodb://${region ?? ""}/${stackName}?${endpoint}provisioning=table`;
  // A transport that the caller passed in need not say where it leads.
  const where = region ? ` in ${region}` : "";
  return (
    `Neither a stack nor a table ${stackName} exists${where} (or it is not ready); create the table with the URL ${url}, ` +
    `on the command line with zae-limiter --repository "${url}" namespace register ${namespace}, ` +
    `or in code with DynamoRepository.open("${namespace}", { stack: "${stackName}", provisioning: "table" }).`
  );
}
