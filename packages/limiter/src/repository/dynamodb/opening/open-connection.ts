import { ValidationError } from "../../../core/errors.ts";
import { CorrectedClock, systemClock, systemRandom } from "../../system-clock.ts";
import { Connection } from "../table/connection.ts";
import {
  sdkTransport,
  wrapClient,
  type SdkConnection,
  type SdkOptions,
} from "../transport/sdk-transport.ts";
import { isObserved, type DynamoTransport } from "../transport/transport.ts";
import { resolveOptions, type DynamoOptions, type ResolvedOptions } from "./options.ts";

/** A connection to the table of a stack, and what its options mean. */
export interface OpenedConnection {
  readonly connection: Connection;
  readonly region: string;
  readonly resolved: ResolvedOptions;
}

/** Opens a connection as options say; nothing is sent yet. The caller closes it. */
export async function openConnection(
  namespace: string | undefined,
  options: DynamoOptions,
): Promise<OpenedConnection> {
  const resolved = resolveOptions(
    namespace,
    { ...readPlace(options.transport), ...options },
    process.env,
  );
  const correctedClock = new CorrectedClock(systemClock);
  const { transport, region } = await openTransport(options, {
    ...resolved,
    dates: correctedClock,
  });
  const { requestTimeoutMs, maxAttempts } = resolved;
  const connection = new Connection({
    transport,
    tableName: resolved.stackName,
    // A clock that the caller passed in is trusted, and not corrected.
    clock: options.clock ?? correctedClock,
    random: options.random ?? systemRandom,
    requestTimeoutMs,
    maxAttempts,
  });
  return { connection, region, resolved };
}

async function openTransport(options: DynamoOptions, resolved: SdkOptions): Promise<SdkConnection> {
  if (options.transport !== undefined && options.client !== undefined)
    throw new ValidationError("transport", undefined, "give a client or a transport, not both");
  if (options.transport !== undefined)
    return {
      transport: borrowTransport(options.transport, resolved),
      region: resolved.region ?? "",
    };
  return options.client === undefined
    ? sdkTransport(resolved)
    : wrapClient(options.client, resolved);
}

/** The caller closes a transport that it passed in: several repositories may share it. */
function borrowTransport(transport: DynamoTransport, { dates }: SdkOptions): DynamoTransport {
  const stopWatching =
    isObserved(transport) && dates !== undefined
      ? transport.watchServerDate((date) => dates.learn(date))
      : () => {};
  return {
    call: (operation, input, options) => transport.call(operation, input, options),
    close: stopWatching,
  };
}

/**
 * The region and address of a transport that exposes them, so that options need not repeat them.
 */
function readPlace(
  transport: DynamoTransport | undefined,
): Pick<DynamoOptions, "region" | "endpointUrl"> {
  if (transport === undefined || !isObserved(transport)) return {};
  const { region, endpointUrl } = transport;
  return endpointUrl === undefined ? { region } : { region, endpointUrl };
}
