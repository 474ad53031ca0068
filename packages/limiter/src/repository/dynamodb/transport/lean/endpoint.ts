import { ValidationError } from "../../../../core/errors.ts";
import type { Environment } from "../local-engine.ts";

/** Where requests go. */
export interface Endpoint {
  readonly secure: boolean;
  /** The host name for a socket, without brackets. */
  readonly hostname: string;
  readonly port: number;
  /** The value of the `Host` header. */
  readonly host: string;
  /** The path of every request: `/`, or a prefix that ends in it. */
  readonly path: string;
}

/** The domains of AWS's special partitions, by the prefix of their regions. */
const DOMAINS: readonly (readonly [prefix: string, domain: string])[] = [
  ["cn-", "amazonaws.com.cn"],
  ["us-iso-", "c2s.ic.gov"],
  ["us-isob-", "sc2s.sgov.gov"],
  ["eu-isoe-", "cloud.adc-e.uk"],
  ["us-isof-", "csp.hci.ic.gov"],
  ["eusc-", "amazonaws.eu"],
];
const ORDINARY_DOMAIN = "amazonaws.com";

/**
 * Settings that ask for other addresses than the ordinary ones. Ignoring them would silently break
 * a compliance setting.
 */
const OTHER_ADDRESSES = [
  "AWS_USE_FIPS_ENDPOINT=true",
  "AWS_USE_DUALSTACK_ENDPOINT=true",
  "AWS_ACCOUNT_ID_ENDPOINT_MODE=required",
];

/** The services of DynamoDB: tables, and the streams of tables. */
export type ServiceName = "dynamodb" | "streams.dynamodb";

/**
 * The address of a service of DynamoDB in a region. Regions of partitions that are newer than this
 * library need an `endpointUrl`.
 */
export function awsAddress(
  region: string,
  environment: Environment,
  service: ServiceName = "dynamodb",
): string {
  const setting = OTHER_ADDRESSES.map((text) => text.split("=") as [string, string]).find(
    ([name, value]) => environment[name]?.toLowerCase() === value,
  )?.[0];
  if (setting !== undefined)
    throw new ValidationError(
      "endpointUrl",
      undefined,
      `must be passed, because ${setting} is set`,
    );
  if (!/^[a-z]{2,}(?:-[a-z]+)+-\d+$/.test(region))
    throw new ValidationError("region", region, `unknown region '${region}'; pass endpointUrl`);
  const domain = DOMAINS.find(([prefix]) => region.startsWith(prefix))?.[1] ?? ORDINARY_DOMAIN;
  return `https://${service}.${region}.${domain}`;
}

/** An address that the environment names, in the variables that the SDK reads too. */
export function findConfiguredAddress(
  environment: Environment,
  service: ServiceName = "dynamodb",
): string | undefined {
  if (environment["AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"] === "true") return undefined;
  return environment[VARIABLES[service]] || environment["AWS_ENDPOINT_URL"] || undefined;
}

const VARIABLES: Readonly<Record<ServiceName, string>> = {
  dynamodb: "AWS_ENDPOINT_URL_DYNAMODB",
  "streams.dynamodb": "AWS_ENDPOINT_URL_DYNAMODB_STREAMS",
};

/** Parses an address, or throws. */
export function endpointAt(address: string): Endpoint {
  const url = URL.canParse(address) ? new URL(address) : undefined;
  if (
    url === undefined ||
    !/^https?:$/.test(url.protocol) ||
    url.search + url.hash + url.username + url.password !== ""
  )
    throw new ValidationError(
      "endpointUrl",
      address,
      "must be an address such as http://127.0.0.1:8000, without user, query or fragment",
    );
  const secure = url.protocol === "https:";
  return {
    secure,
    hostname: url.hostname.replaceAll(/[[\]]/g, ""),
    port: url.port === "" ? (secure ? 443 : 80) : Number(url.port),
    host: url.host,
    path: url.pathname.endsWith("/") ? url.pathname : `${url.pathname}/`,
  };
}
