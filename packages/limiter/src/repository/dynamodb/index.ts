export { DynamoRepository } from "./dynamo-repository.ts";
export type { DynamoOptions } from "./options.ts";
export type { RepositoryBuilder, StackOptions } from "./repository-builder.ts";
export type { DynamoClient } from "./sdk-transport.ts";
export type { DynamoTransport } from "./transport.ts";
