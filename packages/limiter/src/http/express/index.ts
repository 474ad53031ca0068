export { answerRefusals, limitRequests, type ExpressOptions } from "./middleware.ts";
