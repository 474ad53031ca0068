import { PermissionDenied, ZaeLimiterError } from "zae-limiter";
import { withoutCredentials } from "zae-limiter/open";
import { hasNoService } from "../aws/aws-errors.ts";
import type { AwsClients, RequestOptions } from "../aws/clients.ts";
import type { Seen, Unknown } from "./status-model.ts";

/** Whether a part could not be seen. */
export function isUnknown(part: unknown): part is Unknown {
  return typeof part === "object" && part !== null && "unknown" in part;
}

/** A part that was seen; undefined if there is none, or if it is unknown. */
export function getKnown<T>(part: Seen<T>): T | undefined {
  return isUnknown(part) ? undefined : part;
}

/** The service that knows a part, and the error with which it says that there is none. */
export interface Service {
  /** As people write it. */
  readonly name: string;
  /** As policies write it. */
  readonly prefix: string;
  readonly isMissing?: (error: Error) => boolean;
}

/** Sends one request of a part. */
export type Send = <Output>(
  action: string,
  request: (options: RequestOptions) => Promise<Output>,
) => Promise<Output>;

/**
 * Returns the answer of a service; undefined if the part does not exist. An error concerns this
 * part only, never the whole status.
 */
export async function askPart<T>(
  clients: AwsClients,
  { name, prefix, isMissing = () => false }: Service,
  ask: (send: Send) => Promise<Seen<T>>,
): Promise<Seen<T>> {
  const { endpointUrl, signal } = clients;
  const isExpected = (error: unknown): error is Error =>
    error instanceof Error && (hasNoService(error, endpointUrl) || isMissing(error));
  const send: Send = (action, request) => clients.call(`${prefix}:${action}`, request, isExpected);
  try {
    return await ask(send);
  } catch (error) {
    if (signal?.aborted === true) return { unknown: `${name} did not answer in time` };
    if (isExpected(error))
      return hasNoService(error, endpointUrl)
        ? { unknown: withoutCredentials(`${endpointUrl} has no ${name}`) }
        : undefined;
    if (!(error instanceof ZaeLimiterError)) throw error;
    return { unknown: buildReason(error) };
  }
}

/** One sentence; a denial needs no second one that names the user and the resource. */
function buildReason(error: ZaeLimiterError): string {
  const { message } = error;
  return error instanceof PermissionDenied ? message.replace(/ \(User: .*\)\.$/, ".") : message;
}
