import type {
  AcquireMessage,
  ChargeMessage,
  EndMessage,
  MeteredMessage,
  StreamMessage,
} from "./messages.ts";

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
  /** A `MeteredMessage` when a model call was settled. */
  metered: "zae-limiter:metered",
  /** A `StreamMessage` when a streamed model response begins, and when it has ended. */
  stream: "zae-limiter:stream",
} as const;

/** The part of a channel that is used. */
interface Channel<Message> {
  readonly hasSubscribers: boolean;
  publish(message: Message): void;
}

/** The part of a tracing channel that is used. */
interface TracingChannel<Message> {
  readonly hasSubscribers: boolean;
  tracePromise<T>(work: () => Promise<T>, message: Message): Promise<T>;
}

/** The part of `node:diagnostics_channel` that is used. */
interface DiagnosticsChannel {
  channel(name: string): Channel<object>;
  tracingChannel(name: string): TracingChannel<object>;
}

/*
 * Publishers check `hasSubscribers` first, every time, and build no message if it is false.
 * Nothing is imported, because browsers have no such module: no subscriber can exist there. The
 * channels are kept here, because Node forgets channels that are not referenced.
 */
const NODE = builtin();

/** Publishes acquires. */
export const ACQUIRE: TracingChannel<AcquireMessage> = NODE?.tracingChannel(CHANNELS.acquire) ?? {
  hasSubscribers: false,
  tracePromise: (work) => work(),
};

/** Publishes ends of leases. */
export const END: Channel<EndMessage> = openChannel(CHANNELS.end);

/** Publishes charges. */
export const CHARGE: Channel<ChargeMessage> = openChannel(CHANNELS.charge);

/** Publishes settled model calls. */
export const METERED: Channel<MeteredMessage> = openChannel(CHANNELS.metered);

/** Publishes starts and ends of streamed model responses. */
export const STREAM: Channel<StreamMessage> = openChannel(CHANNELS.stream);

function openChannel(name: string): Channel<object> {
  return NODE?.channel(name) ?? { hasSubscribers: false, publish: () => {} };
}

function builtin(): DiagnosticsChannel | undefined {
  const { process } = globalThis as {
    readonly process?: { getBuiltinModule?(name: string): DiagnosticsChannel | undefined };
  };
  return process?.getBuiltinModule?.("node:diagnostics_channel");
}
