import { ValidationError } from "../../../../core/errors.ts";
import { checkOptions, optionNames } from "../../../../core/options.ts";
import { systemClock, type Clock } from "../../../system-clock.ts";
import { VERSION } from "../../../../core/version.ts";
import { isClockSkew } from "../failure.ts";
import { awsAddress, findConfiguredAddress, endpointAt, type Endpoint } from "./endpoint.ts";
import { parseOutput } from "./lean-answer.ts";
import { CredentialCache, chooseProvider, type CredentialProvider } from "./lean-credentials.ts";
import { HttpClient, type HttpAnswer } from "./lean-http.ts";
import {
  isLoopback,
  LOCAL_REGION,
  type AwsCredentials,
  type Environment,
} from "../local-engine.ts";
import { buildMissingRegionError, checkRegion } from "../region.ts";
import { settingsFromSdk } from "./sdk-settings.ts";
import { CONTENT_TYPE, Signer } from "./signature.ts";
import { STREAM_OPERATIONS, type HttpAgent, type ObservedTransport } from "../transport.ts";

/** How a lean transport is made. */
export interface LeanTransportOptions {
  /** The region to sign for. @default `AWS_REGION`, or what the SDK finds */
  readonly region?: string;
  /** An address other than AWS's. @default `AWS_ENDPOINT_URL_DYNAMODB`, or the region's */
  readonly endpointUrl?: string;
  /**
   * Credentials, or a function that finds them, which is called again before they expire.
   * @default those of the environment, or what the SDK finds
   */
  readonly credentials?: AwsCredentials | CredentialProvider;
  /**
   * Makes the connections, for a proxy or your own certificates; the caller closes it.
   * @default one that keeps up to 128 connections
   */
  readonly agent?: HttpAgent;
}

/**
 * Sends signed calls to DynamoDB with a fraction of the SDK's CPU. Needs the SDK only where
 * credentials or the region are to be found in files, in a container or on the network.
 *
 * @example
 * const transport = await leanTransport({ region: "eu-west-1" });
 * const repository = await DynamoRepository.open("my-app", { transport, provisioning: "table" });
 */
export async function leanTransport(
  options: LeanTransportOptions = {},
): Promise<ObservedTransport> {
  return openLeanTransport(options, { environment: process.env, clock: systemClock });
}

/** The same, with an environment and a clock that tests choose. */
export async function openLeanTransport(
  options: LeanTransportOptions,
  { environment, clock }: { readonly environment: Environment; readonly clock: Clock },
): Promise<ObservedTransport> {
  checkOptions(options, OPTION_NAMES, "leanTransport");
  const address = options.endpointUrl ?? findConfiguredAddress(environment);
  const given = address === undefined ? undefined : endpointAt(address);
  const region = await findRegion(options.region, address, environment);
  const endpoint = given ?? endpointAt(awsAddress(region, environment));
  const provide = await chooseProvider(options.credentials, {
    region,
    endpointUrl: address,
    environment,
  });
  return new LeanTransport({
    region,
    endpointUrl: options.endpointUrl,
    endpoint,
    streamEndpoint: () => findStreamEndpoint(options.endpointUrl, region, environment),
    clock,
    provide,
    agent: options.agent,
  });
}

/** Where streams are read: an address that was passed in serves both. */
function findStreamEndpoint(
  endpointUrl: string | undefined,
  region: string,
  environment: Environment,
): Endpoint {
  const service = "streams.dynamodb";
  return endpointAt(
    endpointUrl ??
      findConfiguredAddress(environment, service) ??
      awsAddress(region, environment, service),
  );
}

const OPTION_NAMES = optionNames<LeanTransportOptions>({
  region: true,
  endpointUrl: true,
  credentials: true,
  agent: true,
});

interface LeanParts {
  readonly region: string;
  readonly endpointUrl: string | undefined;
  readonly endpoint: Endpoint;
  readonly streamEndpoint: () => Endpoint;
  readonly clock: Clock;
  readonly provide: CredentialProvider;
  readonly agent: HttpAgent | undefined;
}

/** Errors that mean that credentials have expired. */
const EXPIRED: ReadonlySet<string> = new Set(["ExpiredTokenException", "ExpiredToken"]);
const USER_AGENT = `zae-limiter/${VERSION}`;

/** What all calls of one service have in common. */
interface Service {
  /** How the value of `x-amz-target` begins. */
  readonly target: string;
  readonly constantHeaders: readonly string[];
  readonly http: HttpClient;
  readonly signer: Signer;
}

function serviceAt(
  endpoint: Endpoint,
  {
    region,
    agent,
    target,
  }: {
    readonly region: string;
    readonly agent: HttpAgent | undefined;
    readonly target: string;
  },
): Service {
  const { host, path } = endpoint;
  return {
    target,
    constantHeaders: [
      "Host",
      host,
      "Content-Type",
      CONTENT_TYPE,
      "Accept-Encoding",
      "identity",
      "User-Agent",
      USER_AGENT,
    ],
    http: new HttpClient(endpoint, agent),
    signer: new Signer({ host, path, region }),
  };
}

class LeanTransport implements ObservedTransport {
  readonly region: string;
  readonly endpointUrl: string | undefined;
  readonly #tables: Service;
  readonly #openStreams: () => Service;
  #streams: Service | undefined;
  readonly #credentials: CredentialCache;
  readonly #clock: Clock;
  readonly #dateListeners = new Set<(date: string | undefined) => void>();
  /**
   * How far the server's clock is ahead of ours, once it has refused a signature because of its
   * time.
   */
  #skewMs = 0;

  constructor(parts: LeanParts) {
    const { region, endpointUrl, endpoint, streamEndpoint, clock, provide, agent } = parts;
    this.region = region;
    this.endpointUrl = endpointUrl;
    this.#tables = serviceAt(endpoint, { region, agent, target: "DynamoDB_20120810" });
    this.#openStreams = () =>
      serviceAt(streamEndpoint(), { region, agent, target: "DynamoDBStreams_20120810" });
    this.#credentials = new CredentialCache(provide, () => this.#nowMs());
    this.#clock = clock;
  }

  async call(
    operation: string,
    input: object,
    { signal }: { readonly signal: AbortSignal },
  ): Promise<object> {
    signal.throwIfAborted();
    const found = this.#credentials.get();
    const credentials = found instanceof Promise ? await orAborted(found, signal) : found;
    const service = STREAM_OPERATIONS.has(operation)
      ? (this.#streams ??= this.#openStreams())
      : this.#tables;
    const body = JSON.stringify(input);
    const answer = await service.http.post({
      headers: this.#headers(service, { credentials, operation, body }),
      body,
      signal,
    });
    for (const listener of this.#dateListeners) listener(answer.headers.date);
    try {
      return parseOutput(answer);
    } catch (error) {
      this.#learn(error as Error, answer, credentials);
      throw error;
    }
  }

  watchServerDate(listener: (date: string | undefined) => void): () => void {
    this.#dateListeners.add(listener);
    return () => void this.#dateListeners.delete(listener);
  }

  close(): void {
    this.#tables.http.close();
    this.#streams?.http.close();
  }

  #headers(
    service: Service,
    {
      credentials,
      operation,
      body,
    }: {
      readonly credentials: AwsCredentials;
      readonly operation: string;
      readonly body: string;
    },
  ): string[] {
    const target = `${service.target}.${operation}`;
    const { date, authorization } = service.signer.sign({
      credentials,
      target,
      body,
      nowMs: this.#nowMs(),
    });
    const headers = [
      ...service.constantHeaders,
      "Content-Length",
      String(Buffer.byteLength(body)),
      "X-Amz-Target",
      target,
    ];
    headers.push("X-Amz-Date", date, "Authorization", authorization);
    if (credentials.sessionToken) headers.push("X-Amz-Security-Token", credentials.sessionToken);
    return headers;
  }

  /** The server's time, as far as is known: signatures and credentials expire by it. */
  #nowMs(): number {
    return this.#clock.now() + this.#skewMs;
  }

  /**
   * Learns from an error what to correct: the next attempt is signed with the server's time, or
   * with other credentials.
   */
  #learn(error: Error, { headers }: HttpAnswer, credentials: AwsCredentials): void {
    if (EXPIRED.has(error.name)) this.#credentials.reject(credentials);
    const serverMs = Date.parse(headers.date ?? "");
    if (isClockSkew(error) && !Number.isNaN(serverMs)) this.#skewMs = serverMs - this.#clock.now();
  }
}

async function findRegion(
  region: string | undefined,
  endpointUrl: string | undefined,
  environment: Environment,
): Promise<string> {
  const named = region ?? (environment["AWS_REGION"] || environment["AWS_DEFAULT_REGION"]);
  if (named) return checkRegion(named);
  if (isLoopback(endpointUrl)) return LOCAL_REGION;
  try {
    return checkRegion(await (await settingsFromSdk({ endpointUrl })).region());
  } catch (error) {
    if (error instanceof ValidationError) throw error;
    throw buildMissingRegionError(error);
  }
}

/** Stops waiting for credentials when the call aborts; other calls may still wait for them. */
async function orAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason as Error);
    signal.addEventListener("abort", onAbort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}
