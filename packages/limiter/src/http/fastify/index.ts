export {
  answerRefusals,
  limiterPlugin,
  limitRequests,
  type FastifyOptions,
} from "./limiter-plugin.ts";
