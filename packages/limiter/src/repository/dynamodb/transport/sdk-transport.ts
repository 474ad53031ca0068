import { InfrastructureError } from "../../../core/errors.ts";
import { localCredentials, type Environment } from "./local-engine.ts";
import { buildMissingRegionError } from "./region.ts";
import { MAX_SOCKETS, STREAM_OPERATIONS, type DynamoTransport } from "./transport.ts";

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

/** The part of the SDK's package for streams that is used. */
type StreamsSdk = Readonly<Record<string, Command>> & {
  readonly DynamoDBStreamsClient: new (configuration: object) => SdkClient;
};

interface SdkClient extends DynamoClient {
  readonly config?: {
    readonly region?: () => Promise<string>;
    readonly credentials?: unknown;
    /** Absent, or one that the caller chose, when `isCustomEndpoint` is set. */
    readonly endpoint?: unknown;
    readonly isCustomEndpoint?: boolean;
  };
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
  const configuration = clientConfiguration(options, process.env);
  const client = new sdk.DynamoDBClient(configuration);
  watchDates(client, options);
  return {
    transport: new SdkTransport(
      { commands: sdk, client },
      { owned: true, openStreams: async () => streamsPart(configuration, options) },
    ),
    region: await findRegion(client, options),
  };
}

/**
 * A transport over a client that the caller passed in and will close. Its own retries should be
 * off: `maxAttempts: 1`.
 */
export async function wrapClient(
  client: DynamoClient,
  options: SdkOptions,
): Promise<SdkConnection> {
  const region = await findRegion(client, options);
  const { endpointUrl } = options;
  const { credentials, endpoint, isCustomEndpoint = false } = (client as SdkClient).config ?? {};
  const configuration = {
    ...clientConfiguration({ region: region || undefined, endpointUrl }, process.env),
    ...(credentials !== undefined && { credentials }),
    ...(endpointUrl === undefined && isCustomEndpoint && { endpoint }),
  };
  return {
    transport: new SdkTransport(
      { commands: await loadSdk(), client },
      { owned: false, openStreams: async () => streamsPart(configuration, options) },
    ),
    region,
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

/** One client of the SDK, and the commands that it knows. */
interface SdkPart {
  readonly commands: Readonly<Record<string, Command>>;
  readonly client: DynamoClient;
}

/** One client for the table, and one for its stream as soon as that is read. */
class SdkTransport implements DynamoTransport {
  readonly #table: SdkPart;
  readonly #isTableOwned: boolean;
  readonly #openStreams: () => Promise<SdkPart>;
  #streams: Promise<SdkPart> | undefined;

  constructor(
    table: SdkPart,
    options: { readonly owned: boolean; readonly openStreams: () => Promise<SdkPart> },
  ) {
    this.#table = table;
    this.#isTableOwned = options.owned;
    this.#openStreams = options.openStreams;
  }

  async call(
    operation: string,
    input: object,
    { signal }: { readonly signal: AbortSignal },
  ): Promise<object> {
    const { commands, client } = STREAM_OPERATIONS.has(operation)
      ? await (this.#streams ??= this.#openStreams())
      : this.#table;
    const command = new (findCommand(commands, operation))(input) as never;
    return (await client.send(command, { abortSignal: signal })) as object;
  }

  close(): void {
    if (this.#isTableOwned) this.#table.client.destroy?.();
    // A package that could not be loaded was reported when it was needed.
    this.#streams?.then(
      ({ client }) => client.destroy?.(),
      () => undefined,
    );
  }
}

async function streamsPart(configuration: object, options: SdkOptions): Promise<SdkPart> {
  const commands = await loadStreamsSdk();
  const client = new commands.DynamoDBStreamsClient(configuration);
  watchDates(client, options);
  return { commands, client };
}

function findCommand(sdk: SdkPart["commands"], operation: string): Command {
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

async function findRegion(client: SdkClient, { region }: SdkOptions): Promise<string> {
  if (region !== undefined) return region;
  try {
    return (await client.config?.region?.()) ?? "";
  } catch (error) {
    throw buildMissingRegionError(error);
  }
}

/** Loads the optional peer, or throws an error that says how to install it. */
export async function loadSdk(): Promise<Sdk> {
  try {
    return (await import("@aws-sdk/client-dynamodb")) as unknown as Sdk;
  } catch (error) {
    throw buildMissingClientError("The DynamoDB backend", "client-dynamodb", PASS_TRANSPORT, error);
  }
}

async function loadStreamsSdk(): Promise<StreamsSdk> {
  try {
    return (await import("@aws-sdk/client-dynamodb-streams")) as unknown as StreamsSdk;
  } catch (error) {
    throw buildMissingClientError(
      "Reading a table's stream",
      "client-dynamodb-streams",
      PASS_TRANSPORT,
      error,
    );
  }
}

const PASS_TRANSPORT = "pass a transport";

/** The error for a package of the SDK that is not installed; `otherwise` is what also helps. */
export function buildMissingClientError(
  what: string,
  name: string,
  otherwise: string,
  cause: unknown,
): InfrastructureError {
  return new InfrastructureError(
    "ERR_LIMITER_CLIENT_MISSING",
    `${what} needs the AWS SDK. Install it with npm install @aws-sdk/${name}, or ${otherwise}.`,
    { cause },
  );
}
