/*
 * The headers of a request control its answer:
 *
 *   x-local-answer       the text of the answer, or a number of words
 *   x-local-tool-calls   how many steps call the first tool before the answer comes
 *   x-local-usage        JSON: the usage to report, instead of the real one
 *   x-local-headers      JSON: headers of the answer, such as {"retry-after-ms":"1"}
 *   x-local-chunk-delay  milliseconds between the words of a stream
 *   x-local-chunk-words  how many words are in one event of a stream
 *   x-local-fault        what goes wrong; `429 2` goes wrong for two attempts, then never again
 *   x-local-call         names a call, whose attempts are counted separately
 *
 * Where headers cannot be set, two words in the question work too: `slowly` and `badly`.
 */
import { questionTexts, type ProviderRequest } from "./request.ts";

export const ANSWER = "A bucket holds tokens, and refills over time.";

/** How many words of a slow answer are streamed. */
export const SLOW_WORDS = 3;

/**
 * What can go wrong, besides an answer with an error's status:
 *
 * - `no-usage`: the answer does not report its usage.
 * - `no-answer`: the connection is closed instead of an answer.
 * - `cut-before`: status 200, and then the connection is closed.
 * - `cut`: the connection is closed after half of the answer.
 * - `end-early`: the stream ends after half of the answer, as if that were all.
 * - `error-event`: half of the stream, then an event that reports an error.
 * - `slow`: three words of a stream, or half of an answer in one piece, then nothing until the
 *   client hangs up.
 * - `hang`: nothing until the client hangs up.
 */
const FAULTS = [
  "no-usage",
  "no-answer",
  "cut-before",
  "cut",
  "end-early",
  "error-event",
  "slow",
  "hang",
] as const;

type Fault = (typeof FAULTS)[number] | number;

/** How to answer a request. */
export interface Wishes {
  readonly answer: string;
  readonly toolCalls: number;
  readonly usage: unknown;
  readonly headers: Readonly<Record<string, string>>;
  readonly chunkDelayMs: number;
  readonly chunkWords: number;
  readonly fault: Fault | undefined;
}

/** `attempts` counts how often a fault was asked for. Throws for a header that it cannot read. */
export function readWishes(request: ProviderRequest, attempts: Map<string, number>): Wishes {
  const usage = header(request, "usage");
  const headers = JSON.parse(header(request, "headers") ?? "{}") as Record<string, string>;
  return {
    answer: toAnswer(header(request, "answer") ?? ANSWER),
    toolCalls: Number(header(request, "tool-calls") ?? 0),
    usage: usage === undefined ? undefined : JSON.parse(usage),
    headers,
    chunkDelayMs: Number(header(request, "chunk-delay") ?? 0),
    chunkWords: Number(header(request, "chunk-words") ?? 1),
    fault: nextFault(request, attempts),
  };
}

function header({ headers }: ProviderRequest, name: string): string | undefined {
  const value = headers[`x-local-${name}`];
  return Array.isArray(value) ? value.join(", ") : value;
}

function toAnswer(answer: string): string {
  const words = /^\d+$/.test(answer) ? Number(answer) : 0;
  return words === 0 ? answer : "word ".repeat(words).trimEnd();
}

/** The fault of this attempt, which is counted. */
function nextFault(request: ProviderRequest, attempts: Map<string, number>): Fault | undefined {
  const text = header(request, "fault");
  if (text === undefined || text === "") return findFaultInQuestion(request);
  const [name = "", times] = text.split(" ");
  const fault = FAULTS.find((known) => known === name) ?? Number(name);
  if (typeof fault === "number" && !(fault >= 400 && fault <= 599))
    throw new Error(`x-local-fault: ${text} is not one of 400 to 599, ${FAULTS.join(", ")}.`);
  if (times === undefined) return fault;
  const key = `${header(request, "call") ?? ""} ${text}`;
  const attempt = (attempts.get(key) ?? 0) + 1;
  attempts.set(key, attempt);
  return attempt <= Number(times) ? fault : undefined;
}

function findFaultInQuestion({ body }: ProviderRequest): Fault | undefined {
  const texts = questionTexts(body);
  if (texts.some((text) => text.includes("badly"))) return 400;
  if (texts.some((text) => text.includes("slowly"))) return "slow";
  return undefined;
}
