// Made by `npm run declare`.

declare module "declared/zae-limiter/diagnostics" {
  import { Amounts } from "declared/zae-limiter";
  import { RateLimitExceeded } from "zae-limiter";
  import { MeteredRecord } from "declared/zae-limiter/llm";
  export const CHANNELS: {
    readonly acquire: "zae-limiter:acquire";
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
    readonly extending: AcquireMessage | undefined;
    outcome?: "granted" | "degraded" | "refused";
    refusal?: RateLimitExceeded;
    waitedMs?: number;
    error?: unknown;
  }
  export interface ChargeMessage {
    readonly namespace: string;
    readonly entityId: string;
    readonly resource: string;
    readonly amounts: Amounts;
    readonly also: Readonly<Record<string, Amounts>>;
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
  export type MeteredMessage = MeteredRecord;
  export interface StreamMessage {
    readonly resource: string;
    readonly state: "open" | "closed";
  }
}

declare module "declared/zae-limiter/otel" {
  import { MeterProvider, TracerProvider, Attributes } from "@opentelemetry/api";
  import { AcquireMessage } from "declared/zae-limiter/diagnostics";
  import { Repository } from "declared/zae-limiter";
  export function instrument(options?: OtelOptions): Disposable;
  export interface OtelOptions {
    readonly meterProvider?: MeterProvider;
    readonly tracerProvider?: TracerProvider;
    readonly spans?: "acquire" | "none";
    readonly entityOnSpans?: boolean;
    readonly attributes?: (message: AcquireMessage) => Attributes;
    readonly repositories?: readonly Repository[];
  }
  interface Disposable {
    [Symbol.dispose](): void;
  }
}
