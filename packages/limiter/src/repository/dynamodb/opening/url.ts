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

/** What is missing, and where; a transport that was passed in need not say where it leads. */
export type Missing = Pick<
  ResolvedOptions,
  "stackName" | "region" | "endpointUrl" | "namespace" | "provisioning"
>;

/** Says how to create what is missing: on the command line, as URL and in code. */
export function howToCreate(missing: Missing): string {
  return `${describeMissing(missing)}; ${waysToCreate(missing)}`;
}

/** The same where a stack would be deployed, were the package installed that does it. */
export function howToDeploy(missing: Missing): string {
  return (
    `${describeMissing(missing)}, and @zae-limiter/infra, which deploys stacks, is not installed: ` +
    `npm install @zae-limiter/infra, or ${waysToCreate(missing)}`
  );
}

/** Says what to do about a stack whose table was deleted. */
export function howToReplace(missing: Missing): string {
  const command = infrastructureCommand("delete", missing);
  return `Stack ${missing.stackName} exists, but its table does not: delete it with ${command}, and open it again.`;
}

/** The command line that does something to a stack. */
export function infrastructureCommand(
  verb: string,
  { stackName, region, endpointUrl }: Pick<Missing, "stackName" | "region" | "endpointUrl">,
): string {
  const options = { "--stack": stackName, "--region": region, "--endpoint-url": endpointUrl };
  const given = Object.entries(options).filter(([, value]) => value);
  return ["zae-limiter", verb, ...given.flat()].join(" ");
}

function describeMissing({ stackName, region }: Missing): string {
  const where = region ? ` in ${region}` : "";
  return `Neither a stack nor a table ${stackName} exists${where} (or it is not ready)`;
}

function waysToCreate(missing: Missing): string {
  const { stackName, region, endpointUrl, namespace, provisioning } = missing;
  const endpoint = endpointUrl === undefined ? "" : `endpoint=${encodeURIComponent(endpointUrl)}&`;
  const url = `dynamodb://${region ?? ""}/${stackName}?${endpoint}provisioning=table`;
  // Whatever has an address of its own is most likely an engine without CloudFormation.
  const isOnAws = endpointUrl === undefined || provisioning === "stack";
  const command = isOnAws
    ? `deploy the stack with ${infrastructureCommand("deploy", missing)}, or create only the table `
    : `create the table on the command line with zae-limiter --repository "${url}" namespace register ${namespace}, `;
  return (
    `${command}with the URL ${url}, ` +
    `or in code with DynamoRepository.open("${namespace}", { stack: "${stackName}", provisioning: "table" }).`
  );
}
