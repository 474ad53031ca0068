export { answerRefusals, limitRequests, type HonoOptions } from "./middleware.ts";
