import type { Environment } from "../../environment.ts";
import { UsageError } from "../../exit.ts";

/** The global options that say where the data is. */
export interface RepositoryLocation {
  readonly repository?: string;
  /** These three are shorthand for a DynamoDB URL. */
  readonly name?: string;
  readonly region?: string;
  readonly endpointUrl?: string;
}

/**
 * The URL of the repository that the command line or the environment names. Names are checked
 * before they become part of it: one with a "?" could send signed requests to another address.
 */
export function repositoryUrl(
  { repository, name, region, endpointUrl }: RepositoryLocation,
  env: Environment["env"],
): string {
  const isDynamo = [name, region, endpointUrl].some((value) => value !== undefined);
  if (isDynamo && repository !== undefined)
    throw new UsageError(
      "--name, --region and --endpoint-url are shorthand for a DynamoDB URL. " +
        "Pass them or --repository, not both.",
    );
  if (isDynamo) {
    if (name !== undefined && !/^[A-Za-z0-9_.-]+$/.test(name))
      throw new UsageError("--name must be a stack: letters, digits, _ . and - only.");
    if (region !== undefined && !/^[a-z0-9-]+$/.test(region))
      throw new UsageError(
        "--region must be a region such as eu-west-1: small letters, digits and - only.",
      );
    const query = endpointUrl === undefined ? "" : `?endpoint=${encodeURIComponent(endpointUrl)}`;
    return `dynamodb://${region ?? ""}/${name ?? ""}${query}`;
  }
  const url = repository ?? env["ZAEL_REPOSITORY"];
  if (!url)
    throw new UsageError(
      "No repository was given. Pass --repository sqlite:./limits.db, or set ZAEL_REPOSITORY.",
    );
  return url;
}
