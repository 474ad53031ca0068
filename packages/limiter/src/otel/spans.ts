import type { Attributes, Span, Tracer } from "@opentelemetry/api";
import type { AcquireMessage } from "../diagnostics/messages.ts";
import { api } from "./api.ts";
import { errorType, KEYS } from "./attributes.ts";

/** What spans contain, and whether there are any. */
export interface SpanOptions {
  readonly spans: "acquire" | "none";
  readonly entityOnSpans: boolean;
  readonly attributes: ((message: AcquireMessage) => Attributes) | undefined;
}

/** Ends the span of an acquire, or adds an event to the active one. */
export type EndSpan = (message: AcquireMessage) => void;

/** Starts the span of an acquire. Returns the function that ends it. */
export function beginSpan(tracer: Tracer, message: AcquireMessage, options: SpanOptions): EndSpan {
  if (options.spans === "none") return beginEvent(api.trace.getActiveSpan(), options);
  const span = tracer.startSpan(`acquire ${message.resource}`, {
    kind: api.SpanKind.INTERNAL,
    attributes: startAttributes(message, options),
  });
  return (ended) => {
    span.setAttributes(endAttributes(ended, options));
    // Without a message, because messages of errors name the entity.
    if (ended.outcome === undefined) span.setStatus({ code: api.SpanStatusCode.ERROR });
    span.end();
  };
}

function beginEvent(span: Span | undefined, options: SpanOptions): EndSpan {
  return (message) =>
    span?.addEvent("zae_limiter.acquire", {
      ...startAttributes(message, options),
      ...endAttributes(message, options),
    });
}

function startAttributes(message: AcquireMessage, { entityOnSpans }: SpanOptions): Attributes {
  return {
    [KEYS.namespace]: message.namespace,
    [KEYS.resource]: message.resource,
    ...(message.extending !== undefined && { [KEYS.extending]: true }),
    ...(entityOnSpans && { [KEYS.entityId]: message.entityId }),
  };
}

function endAttributes(message: AcquireMessage, { attributes }: SpanOptions): Attributes {
  const { outcome = "error", refusal, waitedMs = 0, error } = message;
  return {
    [KEYS.outcome]: outcome,
    ...(message.waitUpToMs > 0 && { [KEYS.waited]: waitedMs / 1000 }),
    ...(refusal !== undefined && { [KEYS.limit]: refusal.primaryViolation.limitName }),
    // What can never fit has no time to retry at.
    ...(refusal !== undefined &&
      Number.isFinite(refusal.retryAfterSeconds) && {
        [KEYS.retryAfter]: refusal.retryAfterSeconds,
      }),
    ...(outcome === "error" && { [KEYS.errorType]: errorType(error) }),
    ...further(message, attributes),
  };
}

/**
 * The attributes that the application adds. If it throws, the error goes to the log of
 * OpenTelemetry: an error of a channel's subscriber would end the process.
 */
function further(
  message: AcquireMessage,
  attributes: SpanOptions["attributes"],
): Attributes | undefined {
  try {
    return attributes?.(message);
  } catch (error) {
    api.diag.error("zae-limiter: attributes threw, and nothing was added", error);
    return undefined;
  }
}
