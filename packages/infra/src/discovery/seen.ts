import type { Seen, Unknown } from "./status-model.ts";

/** Whether a part could not be seen. */
export function isUnknown(part: unknown): part is Unknown {
  return typeof part === "object" && part !== null && "unknown" in part;
}

/** A part that was seen; undefined if there is none, or if it is unknown. */
export function known<T>(part: Seen<T>): T | undefined {
  return isUnknown(part) ? undefined : part;
}

/** Whom a part asks, and how it answers that there is nothing. */
export interface Asked {
  /** The name of the service, or of a part of it, as people write it. */
  readonly service: string;
  readonly endpointUrl: string | undefined;
  /** Whether an error says that there is no such thing. */
  readonly isMissing?: (error: Error) => boolean;
}

/** What a question is answered with. An error concerns this part, and never the whole status. */
export async function seen<T>(asked: Asked, ask: () => Promise<Seen<T>>): Promise<Seen<T>> {
  try {
    return await ask();
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    if (hasNoService(error, asked.endpointUrl))
      return { unknown: `${asked.endpointUrl} has no ${asked.service}` };
    if (asked.isMissing?.(error) === true) return undefined;
    return { unknown: reasonOf(error) };
  }
}

/** What engines of DynamoDB answer to requests of other services; beside them, no JSON or XML. */
const NO_SERVICE: ReadonlySet<string> = new Set([
  "NotFound",
  "UnknownOperation",
  "UnknownOperationException",
  "InvalidAction",
  "SyntaxError",
]);

/** AWS itself has every service: only another address may lack one. */
function hasNoService(error: Error, endpointUrl: string | undefined): boolean {
  return (
    endpointUrl !== undefined &&
    (NO_SERVICE.has(error.name) || error.message.includes("Deserialization error"))
  );
}

/** Why something could not be seen, in few words. */
export function reasonOf(error: Error): string {
  const action = /not authorized to perform:? (\S+)/.exec(error.message)?.[1];
  if (action !== undefined) return `no permission for ${action}`;
  if (error.name.startsWith("AccessDenied")) return `no permission: ${error.message}`;
  if (error.name === "CredentialsProviderError") return "no credentials were found";
  const code = (error as NodeJS.ErrnoException).code;
  return error.message || code || error.name;
}
