import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { Attributes, MeterProvider, TracerProvider } from "@opentelemetry/api";
import { ValidationError } from "../core/errors.ts";
import { checkOptions, hasMethod, optionNames } from "../core/options.ts";
import { VERSION } from "../core/version.ts";
import { CHANNELS } from "../diagnostics/channels.ts";
import type {
  AcquireMessage,
  ChargeMessage,
  EndMessage,
  StreamMessage,
} from "../diagnostics/messages.ts";
import type { Disposable } from "../repository/platform-types.ts";
import type { Repository } from "../repository/repository.ts";
import { monotonicMs } from "../repository/system-clock.ts";
import { api } from "./api.ts";
import { Metrics } from "./metrics.ts";
import { beginSpan, type EndSpan } from "./spans.ts";
import { observeStores } from "./store-counters.ts";

/** How calls become metrics and spans. */
export interface OtelOptions {
  /** Where metrics go. @default the global provider */
  readonly meterProvider?: MeterProvider;
  /** Where spans go. @default the global provider */
  readonly tracerProvider?: TracerProvider;
  /**
   * A span for each acquire, or an event on the span that is active when it begins.
   * @default "acquire"
   */
  readonly spans?: "acquire" | "none";
  /** Whether spans and events name the entity. Metrics never do. @default false */
  readonly entityOnSpans?: boolean;
  /**
   * Further attributes of spans and events; called when an acquire has ended. They are not added to
   * metrics. If it throws, nothing is added, and `diag` of OpenTelemetry logs the error.
   * @example instrument({ attributes: ({ waitUpToMs }) => ({ "app.may_wait": waitUpToMs > 0 }) });
   */
  readonly attributes?: (message: AcquireMessage) => Attributes;
  /**
   * The repositories whose `getStatistics()` become counters by namespace. List the one that opened
   * a store, not those made with its `namespace()`: they report the same counts. @default none
   */
  readonly repositories?: readonly Repository[];
}

const OPTION_NAMES = optionNames<OtelOptions>({
  meterProvider: true,
  tracerProvider: true,
  spans: true,
  entityOnSpans: true,
  attributes: true,
  repositories: true,
});

/**
 * Turns the calls of every limiter in the process into metrics and spans, until it is disposed of.
 * Call it once, after the OpenTelemetry SDK was started: a second call would count everything
 * twice.
 * @example const telemetry = instrument({ repositories: [repository] });
 */
export function instrument(options: OtelOptions = {}): Disposable {
  check(options);
  const { spans = "acquire", entityOnSpans = false, attributes, repositories = [] } = options;
  const tracer = (options.tracerProvider ?? api.trace).getTracer(SCOPE, VERSION);
  const meter = (options.meterProvider ?? api.metrics).getMeter(SCOPE, VERSION);
  const metrics = new Metrics(meter);
  const stopObserving = observeStores(meter, repositories);
  const stopListening = listen(metrics, (message) =>
    beginSpan(tracer, message, { spans, entityOnSpans, attributes }),
  );
  let isDisposed = false;
  return {
    [Symbol.dispose]: () => {
      if (isDisposed) return;
      isDisposed = true;
      stopListening();
      stopObserving();
      metrics.stop();
    },
  };
}

/** Throws for options that are wrong, before anything is subscribed to. */
function check(options: OtelOptions): void {
  checkOptions(options, OPTION_NAMES, "instrument");
  const { spans = "acquire", entityOnSpans = false, attributes, repositories = [] } = options;
  if (spans !== "acquire" && spans !== "none")
    throw new ValidationError("spans", spans, 'must be "acquire" or "none"');
  if (attributes !== undefined && typeof attributes !== "function")
    throw new ValidationError("attributes", attributes, "must be a function");
  // Any value but false would name every entity.
  if (typeof entityOnSpans !== "boolean")
    throw new ValidationError("entityOnSpans", entityOnSpans, "must be true or false");
  if (
    !Array.isArray(repositories) ||
    !repositories.every((each) => hasMethod(each, "getStatistics"))
  )
    throw new ValidationError("repositories", repositories, "must be an array of repositories");
  checkProvider(options, "meterProvider", "getMeter");
  checkProvider(options, "tracerProvider", "getTracer");
}

function checkProvider(
  options: OtelOptions,
  name: "meterProvider" | "tracerProvider",
  method: string,
): void {
  const provider = options[name];
  if (provider !== undefined && !hasMethod(provider, method))
    throw new ValidationError(name, provider, `must be a provider with ${method}()`);
}

/** The instrumentation scope of metrics and spans. */
const SCOPE = "zae-limiter";

/** An acquire that was observed from its start. */
interface SeenCall {
  readonly beganMs: number;
  readonly endSpan: EndSpan;
}

/**
 * Listens to all channels, and returns a function that stops. Calls, leases and streams that
 * started before are left out, so that the counts add up.
 */
function listen(metrics: Metrics, begin: (message: AcquireMessage) => EndSpan): () => void {
  const seen = new WeakMap<AcquireMessage, SeenCall>();
  const seenStreams = new WeakSet<StreamMessage>();
  const handlers: readonly (readonly [string, (message: unknown) => void])[] = [
    [
      `tracing:${CHANNELS.acquire}:start`,
      (data) => {
        const message = data as AcquireMessage;
        if (message.extending !== undefined && !seen.has(message.extending)) return;
        seen.set(message, { endSpan: begin(message), beganMs: monotonicMs() });
      },
    ],
    [
      `tracing:${CHANNELS.acquire}:asyncEnd`,
      (data) => {
        const message = data as AcquireMessage;
        const call = seen.get(message);
        if (call === undefined) return;
        metrics.recordAcquire(message, (monotonicMs() - call.beganMs) / 1000);
        call.endSpan(message);
      },
    ],
    [
      CHANNELS.end,
      (data) => {
        const message = data as EndMessage;
        if (seen.has(message.acquire)) metrics.recordEnd(message);
      },
    ],
    [CHANNELS.charge, (data) => metrics.recordCharge(data as ChargeMessage)],
    [
      CHANNELS.stream,
      (data) => {
        const message = data as StreamMessage;
        if (message.state === "open") seenStreams.add(message);
        if (seenStreams.has(message)) metrics.recordStream(message);
      },
    ],
  ];
  for (const [channel, handler] of handlers) subscribe(channel, handler);
  return () => {
    for (const [channel, handler] of handlers) unsubscribe(channel, handler);
  };
}
