export { DynamoRepository, type RepositoryBuilder, type StackOptions } from "./dynamo-repository.ts";
export type { DynamoOptions } from "./options.ts";
export type { DynamoClient } from "./sdk-transport.ts";
export type { DynamoTransport } from "./transport.ts";
