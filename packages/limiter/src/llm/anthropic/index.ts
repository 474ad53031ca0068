export { limitFetch, type FetchOptions, type LlmRequest } from "../fetch/limit-fetch.ts";
export { limitMiddleware, type AnthropicMiddleware } from "./limit-middleware.ts";
