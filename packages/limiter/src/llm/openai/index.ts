export { limitFetch, type FetchOptions } from "../fetch/limit-fetch.ts";
export type { LlmRequest } from "../fetch/parse-sent-request.ts";
