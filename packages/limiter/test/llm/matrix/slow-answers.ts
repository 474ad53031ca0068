/*
 * A provider that stops in the middle of its answer while the client waits for it. However long it
 * takes, that is not an idleness: it is not the client who does not read.
 */
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout } from "node:timers/promises";
import { METERING } from "zae-limiter/llm";
import { startProvider } from "../../../../../examples/local-provider/provider.ts";
import { heldAnswer } from "../../support/held-answer.ts";
import { meteredCalls } from "../metered-calls.ts";
import type { Call, Client } from "./client.ts";

const IDLE_MS = 1000;
/** A client that has read nothing for so long waits for more. */
const QUIET_MS = 200;

/** Kinds of calls that every client has. */
export const SLOW_KINDS = ["plain", "stream"] as const;

/** What became of a call whose answer was slow. */
export interface SlowAnswer {
  readonly ends: readonly string[];
  /** The error that its caller got. */
  readonly error: string | undefined;
}

/** Makes a call of each kind with each client; what became of them, by kind and client. */
export async function playSlowly(
  clients: readonly Client[],
): Promise<Readonly<Record<string, SlowAnswer>>> {
  const provider = await startProvider();
  const seen: Record<string, SlowAnswer> = {};
  for (const client of clients)
    for (const kind of SLOW_KINDS) {
      const slow = await startSlowProvider(provider.url);
      seen[`${kind}, ${client.name}`] = await playOne(client, kind, slow);
      await slow.stop();
    }
  await provider.stop();
  return seen;
}

async function playOne(
  client: Client,
  kind: Call["kind"],
  slow: SlowProvider,
): Promise<SlowAnswer> {
  const { clock, options, records } = await meteredCalls({
    idleMs: IDLE_MS,
    metering: METERING.anthropic,
  });
  const call: Call = {
    kind,
    model: "gpt-4.1-mini",
    url: slow.url,
    headers: {},
    signal: new AbortController().signal,
    maxRetries: 0,
    toolResults: undefined,
    metered: options,
    tap: () => {},
  };
  const answered = (kind === "stream" ? readAll(client, call) : client.ask(call)).then(
    () => undefined,
    String,
  );
  await slow.held;
  await setTimeout(QUIET_MS);
  await clock.advance(100 * IDLE_MS);
  slow.goOn();
  const error = await answered;
  return { ends: records.map(({ end, source }) => `${end} ${source}`), error };
}

async function readAll(client: Client, call: Call): Promise<void> {
  for await (const _ of await client.stream(call));
}

interface SlowProvider {
  readonly url: string;
  /** Resolves when half of an answer was sent. */
  readonly held: Promise<void>;
  /** Sends the other half. */
  goOn(): void;
  stop(): Promise<void>;
}

/** Stands before a provider, and sends half of each answer until it is told to go on. */
async function startSlowProvider(providerUrl: string): Promise<SlowProvider> {
  const held = heldAnswer<void>();
  const told = heldAnswer<void>();
  const answer = async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
    const asked = await fetch(`${providerUrl}${incoming.url}`, {
      method: incoming.method!,
      headers: { "content-type": "application/json" },
      body: Buffer.concat(await incoming.toArray()),
    });
    const text = await asked.text();
    outgoing.writeHead(asked.status, { "content-type": asked.headers.get("content-type")! });
    outgoing.write(text.slice(0, text.length / 2), () => held.resolve());
    await told.promise;
    outgoing.end(text.slice(text.length / 2));
  };
  const server = createServer((incoming, outgoing) => void answer(incoming, outgoing));
  await once(server.listen(0, "127.0.0.1"), "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    held: held.promise,
    goOn: () => told.resolve(),
    stop: async () => {
      server.closeAllConnections();
      await once(server.close(), "close");
    },
  };
}
