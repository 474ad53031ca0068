export { limitFetch, type FetchOptions, type LlmRequest } from "../fetch/limit-fetch.ts";
