import { InfrastructureError } from "../../../core/errors.ts";
import { localCredentials, type Environment } from "./local-engine.ts";
import { noRegion } from "./region.ts";
import { MAX_SOCKETS, type DynamoTransport } from "./transport.ts";

/** The part of the SDK's DynamoDBClient that is used. */
export interface DynamoClient {
  /**
   * Sends one command of the SDK.
   * @example await client.send(new GetItemCommand(input), { abortSignal });
   */
  send(
    command: never,
    options?: {
      /** Ends the request, which then rejects. */
      abortSignal?: AbortSignal;
    },
  ): Promise<unknown>;
  /**
   * Closes its connections. The library calls it only on clients that it made.
   * @example client.destroy();
   */
  destroy?(): void;
}

/** How the SDK's client is made when the caller passes none. */
export interface SdkOptions {
  readonly region: string | undefined;
  readonly endpointUrl: string | undefined;
  /** Learns the `Date` header of every reply, errors included. */
  readonly dates?: { learn(date: string | undefined): void };
}

/** A transport and the region that it talks to. */
export interface SdkConnection {
  readonly transport: DynamoTransport;
  readonly region: string;
}

type Command = new (input: object) => object;

/** The part of the SDK's package that is used. */
type Sdk = Readonly<Record<string, Command>> & {
  readonly DynamoDBClient: new (configuration: object) => SdkClient;
};
interface SdkClient extends DynamoClient {
  readonly config?: { readonly region?: () => Promise<string> };
  readonly middlewareStack?: { add(middleware: Middleware, options: object): void };
}

type Middleware = (next: Handler) => Handler;
type Handler = (
  request: object,
) => Promise<{ readonly response: { readonly headers?: Readonly<Record<string, string>> } }>;

/**
 * A transport over the AWS SDK's bare client, which is an optional peer. The client retries nothing
 * by itself: a conditional write that it retried after a lost reply would be charged twice.
 */
export async function sdkTransport(options: SdkOptions): Promise<SdkConnection> {
  const sdk = await loadSdk();
  const client = new sdk.DynamoDBClient(clientConfiguration(options, process.env));
  watchDates(client, options);
  return {
    transport: transportOver(sdk, client, { owned: true }),
    region: await regionOf(client, options),
  };
}

/**
 * A transport over a client that the caller passed in and will close. Its own retries should be
 * off: `maxAttempts: 1`.
 */
export async function wrappedClient(
  client: DynamoClient,
  options: SdkOptions,
): Promise<SdkConnection> {
  return {
    transport: transportOver(await loadSdk(), client, { owned: false }),
    region: await regionOf(client, options),
  };
}

/** What the client is configured with. */
export function clientConfiguration(
  { region, endpointUrl }: SdkOptions,
  environment: Environment,
): object {
  const credentials = localCredentials(endpointUrl, environment);
  return {
    ...(region !== undefined && { region }),
    ...(endpointUrl !== undefined && { endpoint: endpointUrl }),
    ...(credentials !== undefined && { credentials }),
    maxAttempts: 1,
    // Building the middleware stack once instead of per call saves a quarter of the client's CPU.
    cacheMiddleware: true,
    requestHandler: { httpAgent: AGENT, httpsAgent: AGENT },
  };
}

const AGENT = { keepAlive: true, maxSockets: MAX_SOCKETS };

function transportOver(
  sdk: Sdk,
  client: DynamoClient,
  { owned }: { readonly owned: boolean },
): DynamoTransport {
  return {
    async call(operation, input, { signal }) {
      const command = new (commandOf(sdk, operation))(input) as never;
      return (await client.send(command, { abortSignal: signal })) as object;
    },
    close() {
      if (owned) client.destroy?.();
    },
  };
}

function commandOf(sdk: Sdk, operation: string): Command {
  const command = sdk[`${operation}Command`];
  if (command === undefined) throw new TypeError(`DynamoDB has no operation ${operation}`);
  return command;
}

/** Low priority is closest to the network: it sees replies before they become errors. */
function watchDates(client: SdkClient, { dates }: SdkOptions): void {
  if (dates === undefined) return;
  const watch: Middleware = (next) => async (request) => {
    const result = await next(request);
    dates.learn(result.response.headers?.["date"]);
    return result;
  };
  client.middlewareStack?.add(watch, {
    step: "deserialize",
    priority: "low",
    name: "watchServerDate",
  });
}

async function regionOf(client: SdkClient, { region }: SdkOptions): Promise<string> {
  if (region !== undefined) return region;
  try {
    return (await client.config?.region?.()) ?? "";
  } catch (error) {
    throw noRegion(error);
  }
}

/** Loads the optional peer, or throws an error that says how to install it. */
export async function loadSdk(): Promise<Sdk> {
  try {
    return (await import("@aws-sdk/client-dynamodb")) as unknown as Sdk;
  } catch (error) {
    throw new InfrastructureError(
      "ERR_LIMITER_CLIENT_MISSING",
      "The DynamoDB backend needs the AWS SDK. Install it with " +
        "npm install @aws-sdk/client-dynamodb, or pass a transport.",
      { cause: error },
    );
  }
}
