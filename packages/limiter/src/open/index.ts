export { withoutCredentials } from "../core/errors.ts";
export { openRepository } from "./open-repository.ts";
export { tableOptions } from "../repository/dynamodb/opening/url.ts";
