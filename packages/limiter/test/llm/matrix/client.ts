import type { MeteredOptions } from "zae-limiter/llm";
import type { ClientName, End, Kind } from "./cells.ts";

/** A call that a client makes. */
export interface Call {
  readonly kind: Kind;
  /** Names the cell to the provider, and is the resource. */
  readonly model: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  readonly maxRetries: number;
  /** How many results of tools are known; undefined if there are no tools. */
  readonly toolResults: number | undefined;
  readonly metered: MeteredOptions<unknown>;
  /** Called with text that reaches the meter. */
  tap(text: string): void;
}

/** A real client behind a meter. */
export interface Client {
  readonly name: ClientName;
  /** Ends after which a stream stays open until it has not been read for a while. */
  readonly openEnds?: readonly End[];
  /** Whether the client reads a stream to its end even if its caller does not. */
  readonly readsOn?: true;
  /** Whether streams report the input before the answer, as Anthropic's do. */
  readonly reportsInputFirst?: true;
  /** Whether the client reads more of a stream than its caller does. */
  readonly readsAhead?: true;
  /**
   * Whether the meter sees runs and words, but no requests: one lease covers all attempts, and a
   * word counts when the next one is read.
   */
  readonly seesRunsOnly?: true;
  /** Other ends in the records of this client, by "kind, end". */
  readonly otherEnds?: Readonly<Record<string, readonly string[]>>;
  /** Bad ends of streams that the client does not notice; "kind, end" for one kind only. */
  readonly silentEnds?: readonly string[];
  /** Makes a call that is answered in one piece. */
  ask(call: Call): Promise<unknown>;
  /** Makes a call that is streamed. Returns the text as it comes. */
  stream(call: Call): Promise<AsyncIterable<string>>;
  /** Makes a call whose answer is not read. */
  readonly send?: (call: Call) => Promise<unknown>;
  /** Runs a tool loop, if the client does that by itself. */
  readonly loop?: (call: Call) => Promise<unknown>;
}

/** The question of every call: 23 bytes. */
export const QUESTION = "What is a token bucket?";

/** Room for the whole answer of the provider. */
export const MAX_TOKENS = 5000;

export const PARAMETERS = { type: "object", properties: { city: { type: "string" } } } as const;

/** Builds the messages of a conversation with so many tool calls. */
export function conversation<M>(
  results: number | undefined,
  question: M,
  step: (id: string) => readonly M[],
): M[] {
  const steps = Array.from({ length: results ?? 0 }, (_, index) => step(`call_${index + 1}`));
  return [question, ...steps.flat()];
}

/** Builds a fetch that passes the text that is read through it to `call.tap`. */
export function tap(call: Call): typeof fetch {
  return async (...request) => {
    const response = await fetch(...request);
    const isStreamed = response.headers.get("content-type")?.includes("event-stream") === true;
    if (response.body === null || !isStreamed) return response;
    const reader = response.body.getReader();
    const decoder = new TextDecoder();
    let rest = "";
    const body = new ReadableStream<Uint8Array>(
      {
        async pull(controller) {
          const { done, value } = await reader.read();
          if (done) return controller.close();
          const lines = (rest + decoder.decode(value, { stream: true })).split("\n");
          rest = lines.pop()!;
          for (const line of lines) call.tap(toText(line));
          controller.enqueue(value);
        },
        cancel: (reason) => reader.cancel(reason),
      },
      { highWaterMark: 0 },
    );
    return new Response(body, response);
  };
}

/** Returns the text that one line of a stream adds to the answer. */
function toText(line: string): string {
  if (!line.startsWith("data: {")) return "";
  const { choices, delta } = JSON.parse(line.slice("data: ".length)) as {
    readonly choices?: readonly { readonly delta?: { readonly content?: string } }[];
    readonly delta?: string | { readonly text?: string };
  };
  if (typeof delta === "string") return delta;
  return delta?.text ?? choices?.[0]?.delta?.content ?? "";
}
