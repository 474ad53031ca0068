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

/** An option that names a place on DynamoDB. */
export type PlaceOption = "stack" | "region" | "endpointUrl";

/**
 * The stack of a verb that manages stacks on AWS. Where the environment names a repository that has
 * none, the default stack was not meant: the command line must name it by one of these options.
 */
export function managedStack(
  location: RepositoryLocation,
  env: Environment["env"],
  by: readonly PlaceOption[] = ["stack"],
): NamedStack {
  const url = findStacklessUrl({}, env);
  const isNamed =
    location.repository !== undefined || by.some((option) => location[option] !== undefined);
  if (url === undefined || isNamed) return stackPlace(location, env);
  const what = by.length === 1 ? "stack with --stack" : "region with --region";
  throw new UsageError(
    `ZAEL_REPOSITORY is ${url}, which has no stack. Name the ${what}, or unset ZAEL_REPOSITORY.`,
  );
}

/** The repository that the command line or the environment names, if it has no stack. */
export function findStacklessUrl(
  location: RepositoryLocation,
  env: Environment["env"],
): string | undefined {
  const url = location.repository ?? (listShorthand(location) === "" ? env["ZAEL_REPOSITORY"] : "");
  return url && !url.startsWith("dynamodb:") ? url : undefined;
}

/**
 * The stack that the command line or the environment names, or else the default one: a repository
 * of the environment that is not on DynamoDB is ignored.
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
  const { stack = env["ZAEL_STACK"] || DEFAULT_STACK, ...rest } = tableOptions(url);
  return { stack: checkStackName(stack), ...rest };
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
  if (stack !== undefined) checkStackName(stack);
  if (region !== undefined && !/^[a-z0-9-]+$/.test(region))
    throw new UsageError(
      "--region must be a region such as eu-west-1: small letters, digits and - only.",
    );
}

/** Returns the name of a stack, or throws: tables, functions and roles are named after it. */
export function checkStackName(stack: string): string {
  if (!/^[A-Za-z][A-Za-z0-9-]{2,54}$/.test(stack))
    throw new UsageError(
      `'${stack}' cannot be a stack: it must begin with a letter, contain only letters, digits ` +
        "and -, and have 3 to 55 characters, because CloudFormation and DynamoDB refuse others.",
    );
  return stack;
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
