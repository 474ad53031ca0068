/* Telemetry (ADR 024): what limiters publish, and what OpenTelemetry makes of it. Classes have private parts, so those of the library itself are the built ones. */

declare module "declared/zae-limiter/diagnostics" {
  import type { Amounts, RateLimitExceeded } from "zae-limiter";
  import type { MeteredRecord } from "declared/zae-limiter/llm";
  export const CHANNELS: {
    readonly acquire: "zae-limiter:acquire"; // a tracing channel: AcquireMessage
    readonly end: "zae-limiter:end";
    readonly charge: "zae-limiter:charge";
    readonly metered: "zae-limiter:metered";
    readonly stream: "zae-limiter:stream";
  };
  export interface AcquireMessage {
    readonly namespace: string;
    readonly entityId: string;
    readonly resource: string;
    readonly consume: Amounts;
    readonly also: Readonly<Record<string, Amounts>>;
    readonly waitUpToMs: number;
    readonly extending: AcquireMessage | undefined; // of lease.consume: the call whose lease takes more
    outcome?: "granted" | "degraded" | "refused";
    refusal?: RateLimitExceeded;
    waitedMs?: number;
    error?: unknown;
  }
  export interface EndedAmounts {
    readonly taken: Amounts;
    readonly settled: Amounts;
  }
  export interface EndMessage extends EndedAmounts {
    readonly namespace: string;
    readonly entityId: string;
    readonly resource: string;
    readonly how: "commit" | "rollback";
    readonly also: Readonly<Record<string, EndedAmounts>>;
    readonly heldMs: number;
    readonly error: unknown;
    readonly acquire: AcquireMessage;
  }
  export interface ChargeMessage {
    readonly namespace: string;
    readonly entityId: string;
    readonly resource: string;
    readonly amounts: Amounts;
    readonly also: Readonly<Record<string, Amounts>>;
  }
  export type MeteredMessage = MeteredRecord;
  export interface StreamMessage {
    readonly resource: string;
    readonly state: "open" | "closed";
  }
}

declare module "declared/zae-limiter/otel" {
  import type { Attributes, MeterProvider, TracerProvider } from "@opentelemetry/api";
  import type { Repository } from "zae-limiter";
  import type { AcquireMessage } from "declared/zae-limiter/diagnostics";
  export interface OtelOptions {
    readonly meterProvider?: MeterProvider;
    readonly tracerProvider?: TracerProvider; // the global ones
    readonly spans?: "acquire" | "none"; // "none": an event on the active span instead
    readonly entityOnSpans?: boolean; // false
    readonly attributes?: (message: AcquireMessage) => Attributes; // of spans and events
    readonly repositories?: readonly Repository[]; // whose getStatistics() become observable counters
  }
  /** One call for every limiter of the process. */
  export function instrument(options?: OtelOptions): Disposable;
}
