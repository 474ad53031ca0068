import { PermissionDenied } from "../../core/errors.ts";
import type { Clock } from "../system-clock.ts";
import { localCredentials } from "./local-engine.ts";
import { loadSdk, type Sdk } from "./sdk-transport.ts";
import type { AwsCredentials } from "./signature.ts";

/** Something that finds credentials; `forceRefresh` asks it to forget what it remembers. */
export type CredentialProvider = (options?: { readonly forceRefresh?: boolean }) => Promise<AwsCredentials>;

/** Credentials are renewed this long before they expire. While they are still valid, nobody waits for it. */
const RENEW_BEFORE_MS = 5 * 60_000;

/** How long after a renewal that failed another one is tried, while the old credentials are still valid. */
const RENEW_AGAIN_AFTER_MS = 10_000;

/**
 * Remembers credentials, and renews them in time. One renewal runs at a time, whoever waits for it.
 *
 *   none ──get──▶ renewing ──▶ fresh ──5 min before expiry──▶ ageing (still given out; a renewal runs) ──expiry──▶ none
 *                                └──────────── the service calls them expired (`reject`) ───────────────────────▶ none
 */
export class CredentialCache {
  readonly #provide: CredentialProvider;
  readonly #clock: Clock;
  #current: AwsCredentials | undefined;
  #renewing: Promise<AwsCredentials> | undefined;
  #renewAtMs = 0;
  #wereRejected = false;

  constructor(provide: CredentialProvider, clock: Clock) {
    this.#provide = provide;
    this.#clock = clock;
  }

  /** Credentials to sign with; no promise when they are at hand, which is nearly always. */
  get(): AwsCredentials | Promise<AwsCredentials> {
    const nowMs = this.#clock.now();
    if (this.#current === undefined || nowMs >= expiryMs(this.#current)) return this.#renew();
    if (nowMs >= this.#renewAtMs) {
      this.#renewAtMs = nowMs + RENEW_AGAIN_AFTER_MS;
      // The old ones do; whoever needs new ones hears of the failure.
      this.#renew().catch(() => {});
    }
    return this.#current;
  }

  /** Notes that the service takes these for expired. Does nothing when they were renewed meanwhile. */
  reject(credentials: AwsCredentials): void {
    if (this.#current !== credentials) return;
    this.#current = undefined;
    this.#wereRejected = true;
  }

  async #renew(): Promise<AwsCredentials> {
    this.#renewing ??= this.#fetch().finally(() => (this.#renewing = undefined));
    return this.#renewing;
  }

  async #fetch(): Promise<AwsCredentials> {
    const found = checked(await this.#provide(this.#wereRejected ? { forceRefresh: true } : {}));
    this.#wereRejected = false;
    this.#current = found;
    this.#renewAtMs = Math.max(expiryMs(found) - RENEW_BEFORE_MS, this.#clock.now() + RENEW_AGAIN_AFTER_MS);
    return found;
  }
}

/** The credentials of the environment, if it has any. As in the SDK, a chosen profile goes before them. */
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

/** What finds credentials: what was passed in, or the environment, or the SDK with its files, containers, roles and sign-ons. */
export async function providerOf(
  given: AwsCredentials | CredentialProvider | undefined,
  { region, endpointUrl, environment }: CredentialPlace,
): Promise<CredentialProvider> {
  if (typeof given === "function") return given;
  const atHand = given ?? localCredentials(endpointUrl, environment);
  if (atHand !== undefined) return async () => atHand;
  if (environmentCredentials(environment) !== undefined) return async () => environmentCredentials(environment) ?? NONE;
  const { config } = new (await sdkForCredentials()).DynamoDBClient({ region });
  return async (options) => config!.credentials!(options).catch(explained);
}

const NONE: AwsCredentials = { accessKeyId: "", secretAccessKey: "" };
const ADVICE =
  "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, choose a profile with AWS_PROFILE, give the machine a role, or pass credentials.";

async function sdkForCredentials(): Promise<Sdk> {
  try {
    return await loadSdk();
  } catch (error) {
    const message = "There are no AWS credentials in the environment, and the SDK that would look elsewhere is not installed.";
    throw missing(`${message} ${ADVICE} Without the first and the last: npm install @aws-sdk/client-dynamodb.`, { cause: error });
  }
}

/** The SDK says that it found nothing, but not what to do. */
function explained(error: unknown): never {
  throw error instanceof Error && error.name === "CredentialsProviderError"
    ? missing(`${error.message}. ${ADVICE}`, { cause: error })
    : error;
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
