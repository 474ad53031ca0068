export {
  answerRefusals,
  limitRequests,
  type ExpressOptions,
  type LimitHandler,
} from "./middleware.ts";
