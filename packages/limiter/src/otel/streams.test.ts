/*
 * Streamed answers that are open: however a stream ends, the count returns to 0.
 */
import { channel } from "node:diagnostics_channel";
import { CHANNELS } from "zae-limiter/diagnostics";
import { instrument } from "zae-limiter/otel";
import { afterEach, beforeEach, expect, it } from "vitest";
import {
  CALL,
  fixedEstimate,
  MeteredSetting,
  PartReader,
  type Part,
} from "../../test/llm/metered-setting.ts";
import { CollectedTelemetry } from "../../test/support/collected-telemetry.ts";
import type { MeteredOptions } from "../llm/options.ts";
import type { Disposable } from "../repository/platform-types.ts";

let setting: MeteredSetting;
let collected: CollectedTelemetry;
let running: Disposable[];

beforeEach(async () => {
  setting = await MeteredSetting.create();
  collected = new CollectedTelemetry();
  running = [];
});

afterEach(async () => {
  for (const telemetry of running) telemetry[Symbol.dispose]();
  await collected.stop();
  expect(channel(CHANNELS.stream).hasSubscribers).toBe(false);
});

function start(): Disposable {
  const telemetry = instrument({ meterProvider: collected.meterProvider });
  running.push(telemetry);
  return telemetry;
}

async function open(): Promise<unknown> {
  const series = await collected.series("zae_limiter.streams.open");
  expect(series.map(({ unit }) => unit)).toEqual(series.map(() => "{stream}"));
  return series.map(({ attributes, sum }) => [attributes["zae_limiter.resource"], sum]);
}

interface OpenStream {
  readonly stream: ReadableStream<Part>;
  readonly provider: ReadableStreamDefaultController<Part>;
  readonly abort: AbortController;
}

/** A stream that the provider continues on request. */
async function begin(
  options: Partial<MeteredOptions<string>> = {},
  model = "gpt-5",
): Promise<OpenStream> {
  const call = await setting.meter(options).begin({ ...CALL, model }, "x");
  let provider!: ReadableStreamDefaultController<Part>;
  const source = new ReadableStream<Part>({ start: (controller) => void (provider = controller) });
  const abort = new AbortController();
  return { stream: call.watch(source, new PartReader(), abort.signal), provider, abort };
}

async function drain(stream: ReadableStream<Part>): Promise<void> {
  for await (const _ of stream);
}

const ENDS: Readonly<Record<string, (open: OpenStream) => Promise<unknown>>> = {
  complete: ({ stream, provider }) => {
    provider.enqueue({ bytes: 5, isComplete: true });
    provider.close();
    return drain(stream);
  },
  cancelled: ({ stream }) => stream.cancel(),
  "left by break": async ({ stream, provider }) => {
    provider.enqueue({ bytes: 5 });
    for await (const _ of stream) break;
  },
  aborted: async ({ stream, abort }) => {
    abort.abort();
    await drain(stream).catch(() => {});
  },
  "aborted and never read": async ({ abort }) => {
    abort.abort();
    await setting.clock.advance(0);
  },
  failed: async ({ stream, provider }) => {
    provider.error(new Error("reset"));
    await drain(stream).catch(() => {});
  },
  "ended too early": ({ stream, provider }) => {
    provider.close();
    return drain(stream);
  },
  "never read": () => setting.clock.advance(300_000),
  stopped: async ({ stream, provider }) => {
    provider.enqueue({ bytes: 400_000 });
    await drain(stream).catch(() => {});
  },
};

it.each(Object.keys(ENDS))("%s: none is open", async (how) => {
  start();
  const begun = await begin({ overrun: "stop" });
  expect(await open()).toEqual([["gpt-5", 1]]);
  await ENDS[how]!(begun);
  expect(await open()).toEqual([["gpt-5", 0]]);
});

it("streams are counted by resource", async () => {
  start();
  const [first] = [await begin(), await begin(), await begin({}, "gpt-4")];
  expect(await open()).toEqual([
    ["gpt-5", 2],
    ["gpt-4", 1],
  ]);
  await first.stream.cancel();
  expect(await open()).toEqual([
    ["gpt-5", 1],
    ["gpt-4", 1],
  ]);
});

it("a stream is counted as a whole or not at all, and none as open when counting stops", async () => {
  const before = await begin();
  const first = start();
  const between = await begin();
  const second = start();
  await before.stream.cancel();
  expect(await open()).toEqual([["gpt-5", 1]]);
  first[Symbol.dispose]();
  expect(await open()).toEqual([["gpt-5", 0]]);
  await between.stream.cancel();
  expect(await open()).toEqual([["gpt-5", 0]]);
  second[Symbol.dispose]();
  expect(await open()).toEqual([["gpt-5", 0]]);
});

it("a call that streams nothing, or is refused, opens none", async () => {
  start();
  await (await setting.meter().begin(CALL, "x")).settleFailed();
  const tooMuch = setting.meter({ estimator: fixedEstimate(20_000, 0) });
  await tooMuch.begin(CALL, "x").catch(() => {});
  expect(await open()).toEqual([]);
});
