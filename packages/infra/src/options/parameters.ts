import type { StackOptions } from "zae-limiter/dynamodb";

/**
 * The parameters of the template that options stand for; every one of them is named. Throws
 * `ValidationError` for an option that is invalid, or that contradicts another.
 */
export function parametersOf(
  _stack: string,
  _options: StackOptions,
): Readonly<Record<string, string>> {
  return {};
}
