export {
  answerRefusals,
  limitRequests,
  type ExpressOptions,
  type LimitingHandler,
} from "./middleware.ts";
