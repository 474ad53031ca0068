type Fields = Readonly<Record<string, unknown>>;

/** Types of parts that are tool calls. */
const TOOL_CALLS: ReadonlySet<unknown> = new Set(["tool_use", "tool_call", "function_call"]);

/**
 * Picks the parts of LangChain's messages that are sent to a model, for
 * `toLlmCall({ ...parameters, messages })`. The messages themselves hold everything several times.
 */
export function toSentMessages(messages: unknown): readonly unknown[] {
  if (!Array.isArray(messages)) return [];
  return messages.flat().map((message: unknown) => {
    if (typeof message !== "object" || message === null) return message;
    const { content, name } = message as Fields;
    return { content, name, tool_calls: findToolCalls(message as Fields) };
  });
}

/** Undefined if the content has the tool calls too: they are counted there. */
function findToolCalls({ content, tool_calls, additional_kwargs }: Fields): unknown {
  const isPart = (part: unknown): boolean => TOOL_CALLS.has((Object(part) as Fields)["type"]);
  if (Array.isArray(content) && content.some(isPart)) return undefined;
  if (Array.isArray(tool_calls) && tool_calls.length > 0) return tool_calls;
  const { tool_calls: asSent, function_call } = Object(additional_kwargs) as Fields;
  return asSent ?? function_call;
}
