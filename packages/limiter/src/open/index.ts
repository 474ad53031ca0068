export { openRepository } from "./open-repository.ts";
export { tableOptions } from "../repository/dynamodb/opening/url.ts";
