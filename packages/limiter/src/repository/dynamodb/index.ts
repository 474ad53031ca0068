export { DynamoRepository } from "./dynamo-repository.ts";
export { leanTransport } from "./lean-transport.ts";
export type { CredentialProvider } from "./lean-credentials.ts";
export type { LeanTransportOptions } from "./lean-transport.ts";
export type { DynamoOptions } from "./options.ts";
export type { RepositoryBuilder, StackOptions } from "./repository-builder.ts";
export type { DynamoClient } from "./sdk-transport.ts";
export type { AwsCredentials } from "./signature.ts";
export type { DynamoTransport, ObservedTransport } from "./transport.ts";
