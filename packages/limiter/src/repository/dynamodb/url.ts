import { ValidationError } from "../../core/errors.ts";
import type { DynamoOptions } from "./options.ts";

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
