import type { AcquireMessage, ChargeMessage, EndMessage } from "./messages.ts";

/**
 * The names of the channels of `node:diagnostics_channel` on which every limiter of the process
 * publishes. `acquire` is a tracing channel.
 * @example
 * // subscribe is from node:diagnostics_channel
 * subscribe(CHANNELS.end, (message) => console.log((message as EndMessage).heldMs));
 */
export const CHANNELS = {
  /**
   * A tracing channel: `start`, `end`, `asyncStart`, `asyncEnd` and `error` of each acquire, with
   * an `AcquireMessage`.
   */
  acquire: "zae-limiter:acquire",
  /** An `EndMessage` when a lease has ended. */
  end: "zae-limiter:end",
  /** A `ChargeMessage` when a charge was recorded. */
  charge: "zae-limiter:charge",
} as const;

/** What is used of a channel. */
interface Channel<Message> {
  readonly hasSubscribers: boolean;
  publish(message: Message): void;
}

/** What is used of a tracing channel. */
interface TracingChannel<Message> {
  readonly hasSubscribers: boolean;
  tracePromise<T>(work: () => Promise<T>, message: Message): Promise<T>;
}

/** What is used of `node:diagnostics_channel`. */
interface DiagnosticsChannel {
  channel(name: string): Channel<object>;
  tracingChannel(name: string): TracingChannel<object>;
}

/*
 * Whoever publishes asks `hasSubscribers` first, every time, and makes no message if it is false.
 * Nothing is imported, because browsers have no such module: nobody can listen there. The channels
 * are kept here, because Node forgets channels that nobody refers to.
 */
const NODE = builtin();

/** Publishes acquires. */
export const ACQUIRE: TracingChannel<AcquireMessage> = NODE?.tracingChannel(CHANNELS.acquire) ?? {
  hasSubscribers: false,
  tracePromise: (work) => work(),
};

/** Publishes ends of leases. */
export const END: Channel<EndMessage> = channelNamed(CHANNELS.end);

/** Publishes charges. */
export const CHARGE: Channel<ChargeMessage> = channelNamed(CHANNELS.charge);

function channelNamed(name: string): Channel<object> {
  return NODE?.channel(name) ?? { hasSubscribers: false, publish: () => {} };
}

function builtin(): DiagnosticsChannel | undefined {
  const { process } = globalThis as {
    readonly process?: { getBuiltinModule?(name: string): DiagnosticsChannel | undefined };
  };
  return process?.getBuiltinModule?.("node:diagnostics_channel");
}
