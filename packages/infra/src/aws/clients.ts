import { setTimeout as sleep } from "node:timers/promises";
import { CloudFormationClient } from "@aws-sdk/client-cloudformation";
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { S3Client } from "@aws-sdk/client-s3";
import { STSClient } from "@aws-sdk/client-sts";
import { buildNoRegionError, isTransient, isUnreachable, translateError } from "./aws-errors.ts";
import { isLocal, type CheckedPlace } from "./place.ts";

/** How long to wait for AWS. */
export interface Pace {
  /** Milliseconds between two requests for the state of a stack. */
  readonly pollMs: number;
  /** Half of the longest wait before a request is repeated; it doubles with each repetition. */
  readonly backoffMs: number;
}

/** CloudFormation allows a few describe calls a second, for all of an account. */
const AWS_PACE: Pace = { pollMs: 2500, backoffMs: 500 };
/** An engine on this machine does not throttle and finishes at once. */
const LOCAL_PACE: Pace = { pollMs: 10, backoffMs: 2 };
/** Without it, a connection that died unnoticed would be waited for forever. */
const TIMEOUTS = { connectionTimeout: 5_000, requestTimeout: 60_000, throwOnRequestTimeout: true };
/** Together about a minute on AWS, which outlasts any throttling. */
const MAX_ATTEMPTS = 8;
const MAX_BACKOFF_MS = 20_000;
/** Until the first answer: then a wrong region or no network is the likely cause. */
const MAX_FIRST_ATTEMPTS = 3;

/** How the SDK sends a request. */
export interface RequestOptions {
  readonly abortSignal?: AbortSignal;
}

/** The clients of a place, each made when it is first used. */
export class AwsClients {
  readonly stack: string;
  readonly region: string;
  readonly endpointUrl: string | undefined;
  readonly pace: Pace;
  readonly signal: AbortSignal | undefined;
  readonly #made = new Map<string, { destroy(): void }>();
  readonly #configuration: object;
  /** Whether any request was ever answered. */
  #isReached = false;

  private constructor({ stack, endpointUrl, signal }: CheckedPlace, configuration: ClientSettings) {
    this.stack = stack;
    this.region = configuration.region;
    this.endpointUrl = endpointUrl;
    this.signal = signal;
    this.pace = isLocal(endpointUrl) ? LOCAL_PACE : AWS_PACE;
    this.#configuration = configuration;
  }

  /** Opens the clients of a place; nothing is sent yet. The caller closes them. */
  static async open(place: CheckedPlace): Promise<AwsClients> {
    const { endpointUrl } = place;
    const region = place.region ?? (await readSharedRegion());
    return new AwsClients(place, {
      region,
      // Only `call` repeats requests.
      maxAttempts: 1,
      requestHandler: TIMEOUTS,
      ...(endpointUrl !== undefined && { endpoint: endpointUrl }),
      ...localCredentials(endpointUrl),
    });
  }

  get cloudFormation(): CloudFormationClient {
    return this.#client("cloudFormation", (settings) => new CloudFormationClient(settings));
  }

  get dynamoDb(): DynamoDBClient {
    return this.#client("dynamoDb", (settings) => new DynamoDBClient(settings));
  }

  get s3(): S3Client {
    // Virtual hosts would need names that are resolved to the address of an endpoint.
    const forcePathStyle = this.endpointUrl !== undefined;
    return this.#client("s3", (settings) => new S3Client({ ...settings, forcePathStyle }));
  }

  get sts(): STSClient {
    return this.#client("sts", (settings) => new STSClient(settings));
  }

  /**
   * Sends a request, and repeats it a few times if it is throttled or gets no answer, so it must be
   * safe to send twice. The signal of the place aborts it. Throws the errors of this package,
   * except those that the caller handles itself according to `expected`.
   */
  async call<Result>(
    action: string,
    send: (options: RequestOptions) => Promise<Result>,
    expected: (error: unknown) => boolean = () => false,
  ): Promise<Result> {
    const options = this.signal === undefined ? {} : { abortSignal: this.signal };
    for (let attempt = 1; ; attempt += 1)
      try {
        this.signal?.throwIfAborted();
        const result = await send(options);
        this.#isReached = true;
        return result;
      } catch (error) {
        if (!isUnreachable(error)) this.#isReached = true;
        if (expected(error)) throw error;
        const most = this.#isReached ? MAX_ATTEMPTS : MAX_FIRST_ATTEMPTS;
        if (attempt >= most || !isTransient(error))
          throw translateError(error, { ...this, action });
        const longestMs = Math.min(this.pace.backoffMs * 2 ** attempt, MAX_BACKOFF_MS);
        await this.sleep(longestMs * (0.5 + Math.random() / 2));
      }
  }

  /** The same; undefined if it fails with an error that is expected. */
  async callUnless<Result>(
    expected: (error: unknown) => boolean,
    action: string,
    send: (options: RequestOptions) => Promise<Result>,
  ): Promise<Result | undefined> {
    try {
      return await this.call(action, send, expected);
    } catch (error) {
      if (expected(error)) return undefined;
      throw error;
    }
  }

  /** Waits; the signal of the place ends it with an error. */
  async sleep(ms: number): Promise<void> {
    await sleep(ms, undefined, this.signal === undefined ? {} : { signal: this.signal });
  }

  close(): void {
    for (const client of this.#made.values()) client.destroy();
    this.#made.clear();
  }

  #client<Client extends { destroy(): void }>(
    name: string,
    make: (settings: object) => Client,
  ): Client {
    const made = this.#made.get(name) ?? make(this.#configuration);
    this.#made.set(name, made);
    return made as Client;
  }
}

interface ClientSettings {
  readonly region: string;
  readonly [name: string]: unknown;
}

/** Works with the clients of a place, and closes them. */
export async function withClients<Result>(
  place: CheckedPlace,
  work: (clients: AwsClients) => Promise<Result>,
): Promise<Result> {
  const clients = await AwsClients.open(place);
  try {
    return await work(clients);
  } finally {
    clients.close();
  }
}

/** The region that the SDK finds in its shared files. */
async function readSharedRegion(): Promise<string> {
  const client = new STSClient({});
  try {
    return await client.config.region();
  } catch (error) {
    throw buildNoRegionError(error);
  } finally {
    client.destroy();
  }
}

/**
 * An engine on this machine does not check signatures, and searching for credentials takes seconds.
 */
function localCredentials(endpointUrl: string | undefined): object {
  const variables = ["AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE"];
  const hasCredentials = variables.some((name) => process.env[name]);
  return isLocal(endpointUrl) && !hasCredentials
    ? { credentials: { accessKeyId: "local", secretAccessKey: "local" } }
    : {};
}
