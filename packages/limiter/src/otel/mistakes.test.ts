import { tracingChannel } from "node:diagnostics_channel";
import { diag, DiagLogLevel } from "@opentelemetry/api";
import { Limit, RateLimiter } from "zae-limiter";
import { CHANNELS } from "zae-limiter/diagnostics";
import { MemoryRepository } from "zae-limiter/memory";
import { instrument, type OtelOptions } from "zae-limiter/otel";
import { expect, it, vi } from "vitest";
import { CollectedTelemetry } from "../../test/support/collected-telemetry.ts";
import { errorType } from "./attributes.ts";

it.each([
  [{ repositories: [null] }, "must be an array of repositories"],
  [{ repositories: [Promise.resolve()] }, "must be an array of repositories"],
  [{ entityOnSpans: "no" }, "must be true or false"],
  [{ meterProvider: {} }, "must be a provider with getMeter()"],
  [{ tracerProvider: null }, "must be a provider with getTracer()"],
])("the options %j are refused", (options, reason) => {
  expect(() => instrument(options as unknown as OtelOptions)).toThrow(reason);
  expect(tracingChannel(CHANNELS.acquire).hasSubscribers).toBe(false);
});

it("an error of a class without a name has a type", () => {
  const { Unnamed } = { Unnamed: (() => class extends Error {})() };
  expect(errorType(new Unnamed("of key-1"))).toBe("_OTHER");
  expect(errorType(new TypeError("of key-1"))).toBe("TypeError");
});

it("spans lack only further attributes if those throw, which OpenTelemetry logs", async () => {
  const log = vi.fn<(message: string, ...more: unknown[]) => void>();
  const logger = { error: log, warn: log, info: log, debug: log, verbose: log };
  diag.setLogger(logger, DiagLogLevel.ERROR);
  const mistake = new TypeError("a mistake of the application");
  const collected = new CollectedTelemetry();
  const telemetry = instrument({
    meterProvider: collected.meterProvider,
    tracerProvider: collected.tracerProvider,
    attributes: () => {
      throw mistake;
    },
  });
  try {
    const repository = new MemoryRepository();
    await repository.setSystemDefaults([Limit.perMinute("rpm", 10)]);
    const limiter = new RateLimiter({ repository });
    await limiter.acquire({ entityId: "key-1", resource: "gpt-4", consume: { rpm: 1 } }, () => {});
    expect(collected.spans[0]!.attributes).toMatchObject({ "zae_limiter.outcome": "granted" });
  } finally {
    telemetry[Symbol.dispose]();
    diag.disable();
    await collected.stop();
  }
  expect(log.mock.calls).toEqual([[expect.stringContaining("attributes threw"), mistake]]);
});
