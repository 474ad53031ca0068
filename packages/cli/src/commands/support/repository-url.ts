import { tableOptions } from "zae-limiter/open";
import type { Environment } from "../../environment.ts";
import { UsageError } from "../../exit.ts";

/** The global options that name the repository. */
export interface RepositoryLocation {
  readonly repository?: string;
  /** These three are shorthand for a DynamoDB URL. */
  readonly stack?: string;
  readonly region?: string;
  readonly endpointUrl?: string;
}

/**
 * The URL of the repository that the command line or the environment names. Names are checked
 * before they become part of it: one with a "?" could send signed requests to another address.
 */
export function repositoryUrl(location: RepositoryLocation, env: Environment["env"]): string {
  const { repository, stack, region, endpointUrl } = location;
  const url = repository ?? env["ZAEL_REPOSITORY"];
  const shorthand = listShorthand(location);
  if (shorthand !== "") {
    if (repository !== undefined || (url && !url.startsWith("dynamodb:")))
      throw new UsageError(conflictText(shorthand, url ?? "", repository !== undefined));
    checkNames(location);
    const query = endpointUrl === undefined ? "" : `?endpoint=${encodeURIComponent(endpointUrl)}`;
    return `dynamodb://${region ?? ""}/${stack ?? ""}${query}`;
  }
  if (!url)
    throw new UsageError(
      "No repository was given. Pass --repository sqlite:./limits.db, or set ZAEL_REPOSITORY.",
    );
  return url;
}

/**
 * Whether a verb that stores something may create what a URL names: a file, or a table if the URL
 * asks for it or leads to an engine; never a stack.
 */
export function createsOnFirstUse(url: string): boolean {
  if (!url.startsWith("dynamodb:")) return true;
  const query = new URLSearchParams(url.slice(url.indexOf("?") + 1));
  return (query.get("provisioning") || (query.get("endpoint") ? "table" : "stack")) === "table";
}

/** The stack of an infrastructure verb, and how AWS is reached. */
export interface NamedStack {
  readonly stack: string;
  readonly region?: string;
  readonly endpointUrl?: string;
}

const DEFAULT_STACK = "zae-limiter";

/**
 * The stack that the command line or the environment names, or else the default one: infrastructure
 * verbs need no repository, so one that is not on DynamoDB is ignored.
 */
export function stackPlace(location: RepositoryLocation, env: Environment["env"]): NamedStack {
  const { repository } = location;
  if (repository !== undefined && !repository.startsWith("dynamodb:"))
    throw new UsageError(
      `${repository} has no stack. Name one with --stack, or a repository dynamodb://region/stack.`,
    );
  const isNamed = listShorthand(location) !== "" || repository !== undefined;
  const fromEnvironment = env["ZAEL_REPOSITORY"]?.startsWith("dynamodb:") === true;
  const url =
    isNamed || fromEnvironment
      ? repositoryUrl(location, isNamed && repository === undefined ? {} : env)
      : "dynamodb://";
  const { stack, ...rest } = tableOptions(url);
  return { stack: stack ?? (env["ZAEL_STACK"] || DEFAULT_STACK), ...rest };
}

/** The repository that `status` shows: the named one, or else the stack of infrastructure verbs. */
export function repositoryOrStackUrl(
  location: RepositoryLocation,
  env: Environment["env"],
): string {
  const url = location.repository ?? env["ZAEL_REPOSITORY"];
  return url || listShorthand(location) !== ""
    ? repositoryUrl(location, env)
    : `dynamodb:///${stackPlace(location, env).stack}`;
}

function checkNames({ stack, region }: RepositoryLocation): void {
  if (stack !== undefined && !/^[A-Za-z0-9_.-]+$/.test(stack))
    throw new UsageError("--stack must contain only letters, digits and _ . -");
  if (region !== undefined && !/^[a-z0-9-]+$/.test(region))
    throw new UsageError(
      "--region must be a region such as eu-west-1: small letters, digits and - only.",
    );
}

/** The options given that are shorthand for a DynamoDB URL, as they are written. */
function listShorthand({ stack, region, endpointUrl }: RepositoryLocation): string {
  const given = { "--stack": stack, "--region": region, "--endpoint-url": endpointUrl };
  return Object.entries(given)
    .filter(([, value]) => value !== undefined)
    .map(([option]) => option)
    .join(", ");
}

function conflictText(shorthand: string, url: string, byOption: boolean): string {
  const where = `${shorthand} can only name a DynamoDB table, but`;
  return byOption
    ? `${where} --repository already names ${url}. Pass one or the other.`
    : `${where} ZAEL_REPOSITORY is ${url}. Leave ${shorthand} out, or unset ZAEL_REPOSITORY.`;
}
