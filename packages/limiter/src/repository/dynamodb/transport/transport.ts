/**
 * The most connections of a transport. Enough for the parallel calls of a busy process; more
 * requests queue in the client, and time out there.
 */
export const MAX_SOCKETS = 128;

/**
 * The operations on a table's stream. They are calls of another service with an address of its own,
 * which a transport knows: its caller need not.
 */
export const STREAM_OPERATIONS: ReadonlySet<string> = new Set([
  "DescribeStream",
  "GetRecords",
  "GetShardIterator",
  "ListStreams",
]);

/**
 * Sends signed calls: the lean transport, or a wrapped client of the SDK. Inputs and outputs are
 * DynamoDB's JSON. Errors carry DynamoDB's name in `name`, and everything else that it sent; errors
 * of the connection carry Node's `code`. Nothing is retried, and a call ends when its signal
 * aborts.
 */
export interface DynamoTransport {
  /**
   * Sends one signed call: `operation` is DynamoDB's name, such as `UpdateItem`, or one of its
   * streams', such as `GetRecords`.
   * @example const output = await transport.call("GetItem", { TableName, Key }, { signal });
   */
  call(
    operation: string,
    input: object,
    options: {
      /** Ends the call, which then rejects with the signal's reason. */
      readonly signal: AbortSignal;
    },
  ): Promise<object>;
  /**
   * Closes its connections. The creator of a transport calls it.
   * @example transport.close();
   */
  close(): void;
}

/**
 * A transport that also exposes its region and address, and reports the server's time. Optional:
 * any `DynamoTransport` will do.
 */
export interface ObservedTransport extends DynamoTransport {
  /** The region that calls are signed for. */
  readonly region: string;
  /** Absent when the address is AWS's own. */
  readonly endpointUrl: string | undefined;
  /**
   * Calls the listener with the `Date` header of every reply, errors included, until the function
   * that it returns is called.
   * @example const stop = transport.watchServerDate((date) => clock.learn(date));
   */
  watchServerDate(listener: (date: string | undefined) => void): () => void;
}

/**
 * An `Agent` of `node:http` or `node:https`, by the properties that identify it: a project without
 * the types of Node can use this type.
 */
export interface HttpAgent {
  /** The most connections to one host. */
  readonly maxSockets: number;
  /** The most idle connections that are kept open. */
  readonly maxFreeSockets: number;
  /**
   * Closes all connections.
   * @example agent.destroy();
   */
  destroy(): void;
}

/** Whether a transport is an `ObservedTransport`. */
export function isObserved(transport: DynamoTransport): transport is ObservedTransport {
  return "watchServerDate" in transport;
}
