import { InfrastructureError, PermissionDenied } from "../../../../core/errors.ts";
import { failureOf } from "../failure.ts";
import { unsent } from "./lean-http.ts";
import { settingsFromSdk, type SdkSettings } from "./sdk-settings.ts";
import { localCredentials, type AwsCredentials } from "../local-engine.ts";

/** Something that finds credentials; `forceRefresh` asks it to forget what it remembers. */
export type CredentialProvider = (options?: {
  readonly forceRefresh?: boolean;
}) => Promise<AwsCredentials>;

/**
 * Credentials are renewed this long before they expire. While they are still valid, nobody waits
 * for it.
 */
const RENEW_BEFORE_MS = 5 * 60_000;

/**
 * How long after a renewal that failed another one is tried, while the old credentials are still
 * valid.
 */
const RENEW_AGAIN_AFTER_MS = 10_000;

/**
 * A renewal that takes longer is not waited for by those who come later: its provider may never
 * answer.
 */
const RENEWAL_ABANDONED_AFTER_MS = 60_000;

/**
 * Remembers credentials, and renews them in time. One renewal runs at a time, whoever waits for it.
 *
 *   none ──get──▶ renewing ──▶ fresh ──5 min before expiry──▶ ageing (still given out; a renewal runs) ──expiry──▶ none
 *                                └──────────── the service calls them expired (`reject`) ───────────────────────▶ none
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

  /** Credentials to sign with; no promise when they are at hand, which is nearly always. */
  get(): AwsCredentials | Promise<AwsCredentials> {
    const nowMs = this.#nowMs();
    if (this.#current === undefined || nowMs >= expiryMs(this.#current)) return this.#renew();
    if (nowMs >= this.#renewAtMs) {
      this.#renewAtMs = nowMs + RENEW_AGAIN_AFTER_MS;
      // The old ones do; whoever needs new ones hears of the failure.
      this.#renew().catch(() => {});
    }
    return this.#current;
  }

  /**
   * Notes that the service takes these for expired. Does nothing when they were renewed meanwhile.
   */
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
      return checked(await this.#provide(this.#wereRejected ? { forceRefresh: true } : {}));
    } catch (error) {
      throw explained(error);
    }
  }
}

/**
 * The credentials of the environment, if it has any. As in the SDK, a chosen profile goes before
 * them.
 */
export function environmentCredentials(environment: NodeJS.ProcessEnv): AwsCredentials | undefined {
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

/** Where the search takes place. */
export interface CredentialPlace {
  readonly region: string;
  readonly endpointUrl: string | undefined;
  readonly environment: NodeJS.ProcessEnv;
}

/**
 * What finds credentials: what was passed in, or the environment, or the SDK with its files,
 * containers, roles and sign-ons.
 */
export async function providerOf(
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
const ADVICE =
  "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, choose a profile with AWS_PROFILE, give the machine a role, or pass credentials.";

async function settingsForCredentials(
  region: string,
  endpointUrl: string | undefined,
): Promise<SdkSettings> {
  try {
    return await settingsFromSdk({ region, endpointUrl });
  } catch (error) {
    if (!(error instanceof InfrastructureError)) throw error;
    const message =
      "There are no AWS credentials in the environment, and the SDK that would look elsewhere is not installed.";
    throw missing(
      `${message} ${ADVICE} Without the first and the last: npm install @aws-sdk/client-dynamodb.`,
      { cause: error },
    );
  }
}

/**
 * What a provider fails with says what happened to it, not to the table, and not what to do. A
 * provider that cannot answer now sent nothing to the table, and did not find it busy.
 */
function explained(error: unknown): Error {
  if (error instanceof InfrastructureError) return error;
  const said = `No AWS credentials: ${error instanceof Error ? error.message : String(error)}`;
  return failureOf(error).kind === "unavailable"
    ? unsent(said, error)
    : missing(`${said}. ${ADVICE}`, { cause: error });
}

function missing(message: string, options?: ErrorOptions): PermissionDenied {
  return new PermissionDenied(message, options);
}

function expiryMs({ expiration }: AwsCredentials): number {
  return expiration?.getTime() ?? Infinity;
}

function checked(credentials: AwsCredentials): AwsCredentials {
  if (credentials?.accessKeyId && credentials.secretAccessKey) return credentials;
  throw missing(`Nobody has AWS credentials for this process. ${ADVICE}`);
}
