/** A request of a client, as received. */
export interface ProviderRequest {
  readonly path: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: ProviderBody;
}

/** The fields of a request that this provider reads. */
export interface ProviderBody {
  readonly model: string;
  readonly stream?: boolean | null;
  readonly stream_options?: { readonly include_usage?: boolean } | null;
  readonly n?: number | null;
  readonly max_tokens?: number | null;
  readonly max_completion_tokens?: number | null;
  readonly max_output_tokens?: number | null;
  readonly tools?: readonly Tool[] | null;
  readonly messages?: readonly Message[];
  readonly system?: unknown;
  readonly input?: unknown;
  readonly instructions?: unknown;
  readonly prompt?: unknown;
  readonly encoding_format?: string;
}

interface Message {
  readonly role?: string;
  readonly type?: string;
  readonly content?: unknown;
}

interface Tool {
  readonly name?: string;
  readonly parameters?: Schema;
  readonly input_schema?: Schema;
  readonly function?: { readonly name?: string; readonly parameters?: Schema };
}

interface Schema {
  readonly properties?: Readonly<Record<string, { readonly type?: unknown }>>;
}

/** A call of a tool. */
export interface ToolCall {
  readonly id: string;
  readonly name: string;
  readonly arguments: Readonly<Record<string, unknown>>;
}

/** The tokens of a question: one for every three bytes of its texts. */
export function questionTokens(body: Partial<ProviderBody>): number {
  let bytes = 0;
  for (const text of questionTexts(body)) bytes += Buffer.byteLength(text);
  return Math.ceil(bytes / 3);
}

/** Lists the texts of a question, in any protocol. */
export function questionTexts(body: Partial<ProviderBody>): string[] {
  const { system, instructions, messages, input, prompt } = body;
  return [system, instructions, messages, input, prompt].flatMap(listTexts);
}

function listTexts(content: unknown): string[] {
  if (typeof content === "string") return [content];
  if (Array.isArray(content)) return content.flatMap(listTexts);
  if (typeof content !== "object" || content === null) return [];
  const { text, content: inner, output } = content as Readonly<Record<string, unknown>>;
  return [text, inner, output].flatMap(listTexts);
}

/** The maximum of an answer, if the request sets one. */
export function maxTokens(body: ProviderBody): number {
  return body.max_completion_tokens ?? body.max_output_tokens ?? body.max_tokens ?? Infinity;
}

/** Counts the tool results in a request. */
export function toolResults({ messages, input }: ProviderBody): number {
  const items = messages ?? (Array.isArray(input) ? (input as readonly Message[]) : []);
  let results = 0;
  for (const { role, type, content } of items) {
    if (role === "tool" || type === "function_call_output") results += 1;
    if (!Array.isArray(content)) continue;
    results += content.filter((part: Message) => part.type === "tool_result").length;
  }
  return results;
}

/**
 * Builds a call of the first tool. Numbers in it are the number of the step, all else is its name.
 */
export function buildToolCall({ tools }: ProviderBody, step: number): ToolCall | undefined {
  const tool = tools?.[0];
  const name = tool?.name ?? tool?.function?.name;
  if (tool === undefined || name === undefined) return undefined;
  const schema = tool.parameters ?? tool.input_schema ?? tool.function?.parameters;
  const given = Object.entries(schema?.properties ?? {}).map(([property, { type }]) => [
    property,
    type === "number" || type === "integer" ? step : property,
  ]);
  return { id: `call_${step}`, name, arguments: Object.fromEntries(given) };
}
