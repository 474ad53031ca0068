import type { Attributes } from "@opentelemetry/api";
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from "@opentelemetry/sdk-metrics";
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
  type ReadableSpan,
} from "@opentelemetry/sdk-trace-base";

/** One series of one instrument, as it was exported last. */
export interface Series {
  readonly name: string;
  readonly unit: string;
  readonly attributes: Attributes;
  /** The value of a counter, the sum of a histogram. */
  readonly sum: number;
  /** How often a histogram was recorded; undefined of a counter. */
  readonly count: number | undefined;
}

/** The real SDK, with exporters that keep everything. */
export class CollectedTelemetry {
  readonly meterProvider: MeterProvider;
  readonly tracerProvider: BasicTracerProvider;
  readonly #metrics = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  readonly #spans = new InMemorySpanExporter();

  constructor() {
    const reader = new PeriodicExportingMetricReader({
      exporter: this.#metrics,
      // Never: a test collects when it looks.
      exportIntervalMillis: 2 ** 31 - 1,
    });
    this.meterProvider = new MeterProvider({ readers: [reader] });
    this.tracerProvider = new BasicTracerProvider({
      spanProcessors: [new SimpleSpanProcessor(this.#spans)],
    });
  }

  get spans(): readonly ReadableSpan[] {
    return this.#spans.getFinishedSpans();
  }

  /** All series, or those of one instrument. */
  async series(name?: string): Promise<readonly Series[]> {
    this.#metrics.reset();
    await this.meterProvider.forceFlush();
    const metrics = this.#metrics
      .getMetrics()
      .flatMap(({ scopeMetrics }) => scopeMetrics.flatMap((scope) => scope.metrics));
    return metrics
      .filter(({ descriptor }) => name === undefined || descriptor.name === name)
      .flatMap(({ descriptor, dataPoints }) =>
        dataPoints.map(({ attributes, value }) => {
          const { sum, count } =
            typeof value === "number"
              ? { sum: value, count: undefined }
              : (value as { readonly sum: number; readonly count: number });
          return { name: descriptor.name, unit: descriptor.unit, attributes, sum, count };
        }),
      );
  }

  async stop(): Promise<void> {
    await this.meterProvider.shutdown();
    await this.tracerProvider.shutdown();
  }
}
