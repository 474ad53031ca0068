import { InfrastructureError } from "../../../../core/errors.ts";
import { buildMissingCredentialsError } from "../denied.ts";
import { classifyError } from "../failure.ts";
import { unsent } from "./lean-http.ts";
import { settingsFromSdk, type SdkSettings } from "./sdk-settings.ts";
import { localCredentials, type AwsCredentials, type Environment } from "../local-engine.ts";

/** Something that finds credentials; `forceRefresh` asks it not to use its cache. */
export type CredentialProvider = (options?: {
  /** Whether credentials that it has cached must not be used: the service refused them. */
  readonly forceRefresh?: boolean;
}) => Promise<AwsCredentials>;

/**
 * Credentials are renewed this long before they expire. While they are still valid, no call waits
 * for that.
 */
const RENEW_BEFORE_MS = 5 * 60_000;

/**
 * How long after a renewal that failed another one is tried, while the old credentials are still
 * valid.
 */
const RENEW_AGAIN_AFTER_MS = 10_000;

/**
 * Later calls do not wait for a renewal that takes longer than this: its provider may never answer.
 */
const RENEWAL_ABANDONED_AFTER_MS = 60_000;

/**
 * Caches credentials, and renews them in time. One renewal runs at a time, however many calls wait.
 *
 *   none ──get──▶ renewing ──▶ fresh ──5 min before expiry──▶ ageing ──expiry──▶ none
 *                                │                              │ still returned, while a
 *                                │                              │ renewal runs
 *                                └──────────────┬───────────────┘
 *                                               └─ called expired by the service (`reject`) ─▶ none
 */
export class CredentialCache {
  readonly #provide: CredentialProvider;
  readonly #nowMs: () => number;
  #current: AwsCredentials | undefined;
  #renewing: Promise<AwsCredentials> | undefined;
  #renewingSinceMs = 0;
  #renewAtMs = 0;
  #wereRejected = false;

  constructor(provide: CredentialProvider, nowMs: () => number) {
    this.#provide = provide;
    this.#nowMs = nowMs;
  }

  /** Credentials to sign with; no promise when they are cached, which is nearly always. */
  get(): AwsCredentials | Promise<AwsCredentials> {
    const nowMs = this.#nowMs();
    if (this.#current === undefined || nowMs >= expiryMs(this.#current)) return this.#renew();
    if (nowMs >= this.#renewAtMs) {
      this.#renewAtMs = nowMs + RENEW_AGAIN_AFTER_MS;
      // The old ones suffice; a call that needs new ones gets the error.
      this.#renew().catch(() => {});
    }
    return this.#current;
  }

  /** Notes that the service calls these expired. Does nothing when they were renewed meanwhile. */
  reject(credentials: AwsCredentials): void {
    if (this.#current !== credentials) return;
    this.#current = undefined;
    this.#wereRejected = true;
  }

  async #renew(): Promise<AwsCredentials> {
    const nowMs = this.#nowMs();
    if (
      this.#renewing === undefined ||
      nowMs - this.#renewingSinceMs >= RENEWAL_ABANDONED_AFTER_MS
    ) {
      const renewing = this.#fetch().finally(() => {
        if (this.#renewing === renewing) this.#renewing = undefined;
      });
      this.#renewing = renewing;
      this.#renewingSinceMs = nowMs;
    }
    return this.#renewing;
  }

  async #fetch(): Promise<AwsCredentials> {
    const found = await this.#find();
    this.#wereRejected = false;
    this.#current = found;
    this.#renewAtMs = Math.max(
      expiryMs(found) - RENEW_BEFORE_MS,
      this.#nowMs() + RENEW_AGAIN_AFTER_MS,
    );
    return found;
  }

  async #find(): Promise<AwsCredentials> {
    try {
      return checkCredentials(
        await this.#provide(this.#wereRejected ? { forceRefresh: true } : {}),
      );
    } catch (error) {
      throw explainError(error);
    }
  }
}

/**
 * The credentials of the environment, if it has any. As in the SDK, a chosen profile takes
 * precedence.
 */
export function environmentCredentials(environment: Environment): AwsCredentials | undefined {
  const { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey } = environment;
  if (!accessKeyId || !secretAccessKey || environment["AWS_PROFILE"]) return undefined;
  const { AWS_SESSION_TOKEN: sessionToken, AWS_CREDENTIAL_EXPIRATION: expiration } = environment;
  return {
    accessKeyId,
    secretAccessKey,
    ...(sessionToken && { sessionToken }),
    ...(expiration && { expiration: new Date(expiration) }),
  };
}

/** Where to look for credentials. */
export interface CredentialPlace {
  readonly region: string;
  readonly endpointUrl: string | undefined;
  readonly environment: Environment;
}

/**
 * Chooses what finds credentials: what was passed in, or the environment, or the SDK with its
 * files, containers, roles and sign-ons.
 */
export async function chooseProvider(
  given: AwsCredentials | CredentialProvider | undefined,
  { region, endpointUrl, environment }: CredentialPlace,
): Promise<CredentialProvider> {
  if (typeof given === "function") return given;
  const atHand = given ?? localCredentials(endpointUrl, environment);
  if (atHand !== undefined) return async () => atHand;
  if (environmentCredentials(environment) !== undefined)
    return async () => environmentCredentials(environment) ?? NONE;
  const { credentials } = await settingsForCredentials(region, endpointUrl);
  return async (options) => credentials(options);
}

const NONE: AwsCredentials = { accessKeyId: "", secretAccessKey: "" };

async function settingsForCredentials(
  region: string,
  endpointUrl: string | undefined,
): Promise<SdkSettings> {
  try {
    return await settingsFromSdk({ region, endpointUrl });
  } catch (error) {
    if (!(error instanceof InfrastructureError)) throw error;
    throw buildMissingCredentialsError(
      "the environment has none, and the AWS SDK, which looks elsewhere, is missing",
      {
        further: "; profiles and roles need the SDK: npm install @aws-sdk/client-dynamodb",
        cause: error,
      },
    );
  }
}

/**
 * Explains the error of a provider, which says what happened to the provider, but not what to do. A
 * provider that is unavailable has sent nothing to the table, and does not show that the table is
 * busy.
 */
function explainError(error: unknown): Error {
  if (error instanceof InfrastructureError) return error;
  const reason = error instanceof Error ? error.message : String(error);
  return classifyError(error).kind === "unavailable"
    ? unsent(`AWS credentials could not be loaded: ${reason}`, error)
    : buildMissingCredentialsError(reason, { cause: error });
}

function expiryMs({ expiration }: AwsCredentials): number {
  return expiration?.getTime() ?? Infinity;
}

/**
 * A session token from a file may end in a line break, which no header can carry. As in the SDK,
 * blanks at its ends do not count.
 */
function checkCredentials(credentials: AwsCredentials): AwsCredentials {
  if (!credentials?.accessKeyId || !credentials.secretAccessKey)
    throw buildMissingCredentialsError("neither the environment nor a provider has them");
  const sessionToken = credentials.sessionToken?.trim();
  return sessionToken === credentials.sessionToken ? credentials : { ...credentials, sessionToken };
}
