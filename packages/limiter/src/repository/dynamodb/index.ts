export { checkTable } from "./check-table.ts";
export type { TableCheck, TablePlace } from "./check-table.ts";
export { DynamoRepository } from "./dynamo-repository.ts";
export type { RepositoryBuilder } from "./dynamo-repository.ts";
export { leanTransport } from "./transport/lean/lean-transport.ts";
export type { CredentialProvider } from "./transport/lean/lean-credentials.ts";
export type { LeanTransportOptions } from "./transport/lean/lean-transport.ts";
export type { DynamoOptions } from "./opening/options.ts";
export type {
  Compatibility,
  CompatibilityState,
  LambdaState,
  TableVersions,
} from "./items/compatibility.ts";
export { SCHEMA_VERSION } from "./items/compatibility.ts";
export type { StackOptions } from "./opening/stack-options.ts";
export { tableDeclaration, TTL_ATTRIBUTE } from "./table/create-table.ts";
export type { IndexDeclaration, TableDeclaration } from "./table/create-table.ts";
export type { DynamoClient } from "./transport/sdk-transport.ts";
export type { AwsCredentials } from "./transport/local-engine.ts";
export type { DynamoTransport, HttpAgent, ObservedTransport } from "./transport/transport.ts";
