/**
 * One signed call; what the lean transport offers and the SDK's client is wrapped into. Inputs and
 * outputs are DynamoDB's JSON. Errors carry DynamoDB's name in `name`, and whatever else it sent
 * along; errors of the connection carry Node's `code`. Nothing is repeated, and a call ends when
 * its signal aborts.
 */
export interface DynamoTransport {
  call(
    operation: string,
    input: object,
    options: { readonly signal: AbortSignal },
  ): Promise<object>;
  close(): void;
}

/**
 * A transport that also knows where it goes, and hears the server's time. Optional: any
 * `DynamoTransport` will do.
 */
export interface ObservedTransport extends DynamoTransport {
  readonly region: string;
  /** Absent when the address is AWS's own. */
  readonly endpointUrl: string | undefined;
  /**
   * Calls the listener with the `Date` header of every answer, errors included, until the function
   * that it returns is called.
   */
  watchServerDate(listener: (date: string | undefined) => void): () => void;
}

/** Whether a transport is of that kind. */
export function isObserved(transport: DynamoTransport): transport is ObservedTransport {
  return "watchServerDate" in transport;
}
