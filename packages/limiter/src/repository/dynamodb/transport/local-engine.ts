/** The region for local engines, which ignore it. */
export const LOCAL_REGION = "us-east-1";

const LOOPBACK: ReadonlySet<string> = new Set(["127.0.0.1", "localhost", "[::1]"]);
const CREDENTIAL_VARIABLES = [
  "AWS_ACCESS_KEY_ID",
  "AWS_PROFILE",
  "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
  "AWS_WEB_IDENTITY_TOKEN_FILE",
];

/** The variables of a process. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Whether an address is on this machine. */
export function isLoopback(endpointUrl: string | undefined): boolean {
  return endpointUrl !== undefined && LOOPBACK.has(new URL(endpointUrl).hostname);
}

/**
 * Credentials for an engine on this machine where none are set: it checks no signature, and
 * searching for credentials that do not exist takes seconds.
 */
export function localCredentials(
  endpointUrl: string | undefined,
  environment: Environment,
): AwsCredentials | undefined {
  const hasCredentials = CREDENTIAL_VARIABLES.some((name) => environment[name]);
  return isLoopback(endpointUrl) && !hasCredentials
    ? { accessKeyId: "local", secretAccessKey: "local" }
    : undefined;
}

/** What requests are signed with. */
export interface AwsCredentials {
  /** The public half of the key. */
  readonly accessKeyId: string;
  /** The secret half; it signs, and is never sent. */
  readonly secretAccessKey: string;
  /** Present in temporary credentials. */
  readonly sessionToken?: string | undefined;
  /** When they stop being valid. */
  readonly expiration?: Date | undefined;
}
