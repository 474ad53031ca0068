import { describe } from "vitest";
import { leanTransport, type DynamoTransport } from "zae-limiter/dynamodb";
import { sdkTransport } from "../../src/repository/dynamodb/transport/sdk-transport.ts";
import { describeWithEngine, type Engine } from "./engine.ts";

/** The kinds of transport that tests run on. */
export type TransportName = "SDK's" | "lean";

/** What a test transport is made with. */
export interface TransportOptions {
  readonly endpointUrl: string;
  readonly onServerDate?: (date: string | undefined) => void;
}

const REGION = "us-east-1";

/** Opens a transport of that kind; the caller closes it. */
export async function openTransport(
  name: TransportName,
  { endpointUrl, onServerDate = () => {} }: TransportOptions,
): Promise<DynamoTransport> {
  if (name === "SDK's")
    return (await sdkTransport({ endpointUrl, region: REGION, dates: { learn: onServerDate } }))
      .transport;
  const transport = await leanTransport({ endpointUrl, region: REGION });
  transport.watchServerDate(onServerDate);
  return transport;
}

/**
 * The second engine judges what we sign and parse ourselves. Whether both transports agree has been
 * seen on the first one.
 */
const IS_SECOND_ENGINE = process.env["ZAEL_DYNAMODB_ENGINE"] === "dynamodb-local";
const TRANSPORTS: readonly TransportName[] = IS_SECOND_ENGINE ? ["lean"] : ["SDK's", "lean"];

/** For what takes long: each transport on one engine. `.ci/run` runs both. */
export const ONE_TRANSPORT_AN_ENGINE: readonly TransportName[] = IS_SECOND_ENGINE
  ? ["lean"]
  : ["SDK's"];

/** A `describeWithEngine` whose tests run on each transport in turn. */
export function describeWithTransports(
  title: string,
  body: (engine: () => Engine, transport: TransportName) => void,
  transports = TRANSPORTS,
): void {
  describeWithEngine(title, (engine) => {
    describe.each(transports)("over the %s transport", (transport) => body(engine, transport));
  });
}
