import { afterEach, beforeEach, expect } from "vitest";
import type {
  DynamoTransport,
  LeanTransportOptions,
  ObservedTransport,
} from "zae-limiter/dynamodb";
import { ManualClock } from "zae-limiter/testing";
import { openLeanTransport } from "../../src/repository/dynamodb/transport/lean/lean-transport.ts";
import { startScriptedServer, type ScriptedServer } from "./scripted-server.ts";

/** A scripted server for each test, lean transports to it, and what tests do with them. */
export interface LeanCalls {
  readonly server: ScriptedServer;
  readonly clock: ManualClock;
  /** Opens a transport with credentials of no account; closed after the test. */
  open(options?: LeanTransportOptions): Promise<ObservedTransport>;
  /** Puts another server in the place of the test's. */
  serve(server: ScriptedServer): Promise<void>;
  call(transport: DynamoTransport, input?: object, signal?: AbortSignal): Promise<object>;
  /** What a call fails with. */
  failure(transport: DynamoTransport, signal?: AbortSignal): Promise<Error>;
}

/** The region that requests are signed for. */
export const REGION = "eu-west-1";
/** The credentials that requests are signed with. */
export const CREDENTIALS = { accessKeyId: "key", secretAccessKey: "secret" };

const START_MS = Date.UTC(2026, 10, 15);

/** Registers the hooks that give each test its server. */
export function useLeanCalls(): LeanCalls {
  const clock = new ManualClock(START_MS);
  let server: ScriptedServer;
  let opened: DynamoTransport[] = [];

  beforeEach(async () => {
    clock.set(START_MS);
    server = await startScriptedServer();
  });
  afterEach(async () => {
    for (const transport of opened) transport.close();
    opened = [];
    await server.stop();
  });

  return {
    get server() {
      return server;
    },
    clock,
    open: async (options = {}) => {
      const all = {
        region: REGION,
        endpointUrl: server.endpointUrl,
        credentials: CREDENTIALS,
        ...options,
      };
      const transport = await openLeanTransport(all, { environment: {}, clock });
      opened.push(transport);
      return transport;
    },
    serve: async (another) => {
      await server.stop();
      server = another;
    },
    call,
    failure: async (transport, signal) =>
      call(transport, {}, signal).then(
        () => expect.fail("the call succeeded"),
        (error: Error) => error,
      ),
  };
}

async function call(
  transport: DynamoTransport,
  input = {},
  signal = new AbortController().signal,
): Promise<object> {
  return transport.call("UpdateItem", input, { signal });
}
